package dev.tutti.cuda.provider;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.collective.CudaBackend;
import dev.tutti.cuda.collective.CudaJoin;
import dev.tutti.cuda.collective.CudaPlans;
import dev.tutti.cuda.collective.HardwareQueues;
import dev.tutti.cuda.nccl.NcclCalls;
import dev.tutti.cuda.nccl.NcclLibrary;
import dev.tutti.cuda.settings.CudaSettings;
import dev.tutti.cuda.share.FarRanksException;
import dev.tutti.kernels.AllReduceLimits;
import dev.tutti.kernels.KernelImage;
import dev.tutti.kernels.Kernels;
import dev.tutti.kernels.PeerLinks;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.OperationPlan;
import dev.tutti.spi.PlanRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * The provider of {@code cuda}: collectives on the CUDA devices of one host, by this project's
 * kernels for up to 8 ranks, and by NCCL for more ranks or several hosts.
 */
public final class CudaBackendProvider extends DeviceProvider {
  private static final Capabilities CAPABILITIES =
      capabilities(
              Kernels::isReducible,
              Feature.UNEVEN_PARTS,
              Feature.STREAM_ORDERED,
              Feature.DETECTS_DEAD_PEERS,
              Feature.TAGS,
              Feature.SYMMETRIC_MEMORY,
              Feature.RECONFIGURE)
          .toBuilder()
          .algorithms(List.of("one-shot", "two-shot", "chunks", "copies"))
          .build();

  /** Creates the provider; {@link java.util.ServiceLoader} calls this. Loads nothing. */
  public CudaBackendProvider() {
    this(Cuda::get, Cuda::unusableReason, settings -> NcclLibrary.get(settings).calls());
  }

  /**
   * Creates a provider for other devices.
   *
   * @param cuda opens the CUDA driver
   * @param reason returns why the driver cannot be opened, if so
   * @param nccl opens NCCL when it is first needed
   */
  public CudaBackendProvider(
      Supplier<Cuda> cuda, Supplier<Optional<String>> reason, Function<Settings, NcclCalls> nccl) {
    super(cuda, reason, nccl);
  }

  @Override
  public String name() {
    return "cuda";
  }

  @Override
  public Capabilities capabilities(String deviceType) {
    return CAPABILITIES;
  }

  @Override
  public Optional<String> unusableReason(Settings settings) {
    return noDevice.get();
  }

  @Override
  public List<Setting<?>> settings() {
    return CudaSettings.ALL;
  }

  @Override
  public List<String> findings(Settings settings) {
    List<String> lines = new ArrayList<>();
    Properties kernels = KernelImage.record();
    lines.add(
        "kernels compiled by nvcc "
            + kernels.getProperty("compiler")
            + " for "
            + kernels
                .getProperty("targets")
                .replaceAll("-gencode arch=\\S+,code=compute_(\\d+)", "and PTX of $1")
                .replaceAll("-gencode arch=\\S+,code=", ""));
    for (int ranks : new int[] {2, 4, 8}) {
      lines.add(limits(settings, ranks, PeerLinks.SWITCH, ""));
    }
    for (int ranks : new int[] {2, 4, 8}) {
      lines.add(limits(settings, ranks, PeerLinks.PCIE, " over PCIe"));
    }
    HardwareQueues.warning(settings).ifPresent(lines::add);
    return lines;
  }

  private static String limits(Settings settings, int ranks, PeerLinks links, String over) {
    AllReduceLimits limits = CudaSettings.limits(settings, ranks, links);
    return "all-reduce of %s ranks%s: one-shot up to %s bytes, two-shot up to %s, chunks above"
        .formatted(ranks, over, limits.oneShotBytes(), limits.twoShotBytes());
  }

  @Override
  public Optional<OperationPlan> plan(PlanRequest request) {
    return CudaPlans.plan(request);
  }

  /**
   * {@inheritDoc}
   *
   * @throws dev.tutti.BackendException on all ranks, if there are more than 8 ranks or several
   *     hosts without NCCL, if ranks share a device without permission, if devices cannot access
   *     each other's memory, if memory runs out, or if sockets cannot be made in their directory
   */
  @Override
  public Backend create(BackendContext context) {
    try {
      return new CudaBackend(CudaJoin.join(context, cuda.get()));
    } catch (FarRanksException e) {
      return NcclFallback.join(context, cuda.get(), nccl, e);
    }
  }
}
