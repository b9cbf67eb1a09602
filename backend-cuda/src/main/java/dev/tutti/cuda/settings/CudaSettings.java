package dev.tutti.cuda.settings;

import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.kernels.AllReduceLimits;
import dev.tutti.kernels.PeerLinks;
import java.util.List;

/** The settings of the CUDA backends. */
public final class CudaSettings {
  public static final Setting<Boolean> OVERLAPPING_DEVICES =
      Setting.flag(
          "TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES",
          false,
          "whether several ranks of a group may use the same CUDA device");

  public static final Setting<String> SYMMETRIC_MEMORY =
      Setting.of(
          "TORCH_SYMMMEM",
          "CUDA",
          "backend of symmetric memory on CUDA devices; only CUDA is supported",
          CudaSettings::symmetricMemory);

  public static final Setting<Boolean> DISABLE_MULTICAST =
      Setting.flag(
          "TORCH_SYMM_MEM_DISABLE_MULTICAST",
          false,
          "whether SymmetricMemory.hasMulticast is false even if the device has multicast");

  public static final Setting<String> SHARING =
      Setting.text(
          "TUTTI_CUDA_SHARING",
          "auto",
          "how ranks reach each other's device memory: vmm (fabric handles where all ranks have"
              + " them, else file descriptors), fd (file descriptors), ipc (legacy handles) or"
              + " auto");

  public static final Setting<Integer> LANES =
      Setting.integer(
          "TUTTI_X_CUDA_LANES",
          128,
          "maximum number of blocks of a collective kernel, even, the same on all ranks;"
              + " limited to the number of a device's multiprocessors less 4");

  public static final Setting<String> CHUNK_BYTES =
      Setting.text(
          "TUTTI_X_CUDA_CHUNK_BYTES",
          "",
          "bytes of a slot of large collectives, the same on all ranks; if not set, 32K for up to"
              + " 4 ranks, else 16K");

  public static final Setting<String> ONE_SHOT_BYTES =
      Setting.text(
          "TUTTI_X_CUDA_ONE_SHOT_BYTES",
          "",
          "maximum bytes of a one-shot all-reduce, the same on all ranks; if not set, a default"
              + " from measurements, an eighth of it without NVLink");

  public static final Setting<String> TWO_SHOT_BYTES =
      Setting.text(
          "TUTTI_X_CUDA_TWO_SHOT_BYTES",
          "",
          "maximum bytes of a two-shot all-reduce, the same on all ranks; if not set, a default"
              + " from measurements, an eighth of it without NVLink");

  public static final Setting<String> COPIES_BYTES =
      Setting.text(
          "TUTTI_X_CUDA_COPIES_BYTES",
          "",
          "minimum bytes of an all-reduce by copy engines beside computation, the same on all"
              + " ranks; by default, with PCIe, and where ranks share a device, there is none");

  public static final Setting<String> COPIES_PIECE_BYTES =
      Setting.text(
          "TUTTI_X_CUDA_COPIES_PIECE_BYTES",
          "32M",
          "bytes of a tensor that copy engines move at a time, the same on all ranks; a group that"
              + " uses them takes twice as much memory on each device");

  /** A setting of the backend {@code nccl}, which lists it. */
  public static final Setting<Boolean> NCCL_LAZY =
      Setting.flag(
          "TUTTI_NCCL_LAZY",
          false,
          "whether ranks on nccl connect like ranks of PyTorch without a device_id: in their first"
              + " operation, and with a communicator per pair of ranks for messages; the same on"
              + " all ranks of Tutti");

  public static final List<Setting<?>> ALL =
      List.of(
          OVERLAPPING_DEVICES,
          SYMMETRIC_MEMORY,
          DISABLE_MULTICAST,
          SHARING,
          LANES,
          CHUNK_BYTES,
          ONE_SHOT_BYTES,
          TWO_SHOT_BYTES,
          COPIES_BYTES,
          COPIES_PIECE_BYTES);

  private CudaSettings() {}

  private static String symmetricMemory(String text) {
    return switch (text) {
      case "CUDA" -> text;
      case "NVSHMEM", "NCCL" ->
          throw new IllegalArgumentException("Tutti does not support symmetric memory of " + text);
      default -> throw new IllegalArgumentException("must be one of CUDA, NVSHMEM and NCCL");
    };
  }

  /** Returns the size limits up to which each all-reduce algorithm is used. */
  public static AllReduceLimits limits(Settings settings, int ranks, PeerLinks links) {
    AllReduceLimits defaults = AllReduceLimits.of(ranks, links);
    return new AllReduceLimits(
        bytes(settings, ONE_SHOT_BYTES, defaults.oneShotBytes()),
        bytes(settings, TWO_SHOT_BYTES, defaults.twoShotBytes()));
  }

  public static long bytes(Settings settings, Setting<String> setting, long measured) {
    String text = settings.get(setting);
    return text.isEmpty() ? measured : Setting.parseBytes(text);
  }
}
