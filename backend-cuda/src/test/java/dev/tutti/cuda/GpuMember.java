package dev.tutti.cuda;

import dev.tutti.CallOptions;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.cuda.provider.CudaBackendProvider;
import dev.tutti.cuda.provider.NcclBackendProvider;
import dev.tutti.cuda.settings.CudaSettings;
import java.time.Duration;

/**
 * A process of a group that changes: one that works until its peer is killed, continues alone, and
 * lets another one join; or that other one.
 */
final class GpuMember {
  private static final int GENERATIONS = 20;

  private GpuMember() {}

  public static void main(String[] args) {
    Cuda cuda = Cuda.get();
    int rank = Integer.parseInt(args[2]);
    int index = Math.max(rank, 0) % cuda.deviceCount();
    CudaDevice device = cuda.device(rank < 0 ? 1 % cuda.deviceCount() : index);
    GroupOptions options =
        GroupOptions.DEFAULT
            .withInitMethod(args[0])
            .withDevice(Device.cuda(device.index()))
            .withProvider(
                args[1].equals("nccl") ? new NcclBackendProvider() : new CudaBackendProvider())
            .withTimeout(Duration.ofSeconds(60))
            .withSetting(CudaSettings.OVERLAPPING_DEVICES.name(), "1");
    try (CudaStream.Scope _ = device.poolStream().use()) {
      if (rank < 0) {
        changeAgain(ProcessGroup.join(options), device);
      } else {
        lose(ProcessGroup.init(options.withRank(rank).withSize(2)), device);
      }
    }
    System.out.println("good");
  }

  private static void lose(ProcessGroup group, CudaDevice device) {
    Tensor tensor = device.tensors().copyOf(Tensor.of(1f));
    try {
      while (true) {
        group.allReduce(tensor, ReduceOp.MAX, CallOptions.DEFAULT).await();
        System.out.println("ready");
      }
    } catch (TuttiException e) {
      ProcessGroup alone = group.shrink();
      requireSum(alone, device, 1);
      System.out.println("alone");
      changeAgain(alone.grow(1), device);
    }
  }

  /** Changes a group of two again and again, all of whose members stay. */
  private static void changeAgain(ProcessGroup first, CudaDevice device) {
    ProcessGroup group = first;
    requireSum(group, device, 2);
    long before = 0;
    for (int round = 1; round <= GENERATIONS; round++) {
      if (round % 2 == 0) {
        group.revoke("round " + round);
      }
      group = group.shrink();
      requireSum(group, device, 2);
      if (round == 2) {
        before = used(device);
      }
    }
    long more = used(device) - before;
    group.barrier();
    group.close();
    if (more > 4 << 20) {
      throw new AssertionError(more + " bytes more than after two generations");
    }
  }

  private static void requireSum(ProcessGroup group, CudaDevice device, int expected) {
    Tensor sum = device.tensors().copyOf(Tensor.of(1));
    group.allReduce(sum);
    int found = device.tensors().toHost(sum).toIntArray()[0];
    if (found != expected) {
      throw new AssertionError("a sum of " + found + " instead of " + expected);
    }
  }

  private static long used(CudaDevice device) {
    device.context().enter();
    device.tensors().releaseCached();
    var room = device.context().driver().memory().room();
    return room.total() - room.free();
  }
}
