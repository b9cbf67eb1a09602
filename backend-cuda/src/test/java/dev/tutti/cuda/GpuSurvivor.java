package dev.tutti.cuda;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.cuda.provider.CudaBackendProvider;
import dev.tutti.cuda.provider.NcclBackendProvider;
import dev.tutti.cuda.settings.CudaSettings;
import java.time.Duration;
import java.util.Locale;

/** A rank that works until a peer is killed, and then continues without it. */
final class GpuSurvivor {
  private static final Duration TIMEOUT = Duration.ofSeconds(4);

  private static final Duration NCCL_TIMEOUT = Duration.ofSeconds(10); // makes communicators

  private final String directory;
  private final CudaDevice device;
  private final boolean onNccl;

  private GpuSurvivor(String directory, CudaDevice device, boolean onNccl) {
    this.directory = directory;
    this.device = device;
    this.onNccl = onNccl;
  }

  public static void main(String[] args) {
    int rank = Integer.parseInt(args[2]);
    int size = Integer.parseInt(args[3]);
    int victim = Integer.parseInt(args[4]);
    Cuda cuda = Cuda.get();
    boolean onNccl = args[1].startsWith("nccl");
    GpuSurvivor own = new GpuSurvivor(args[0], cuda.device(rank % cuda.deviceCount()), onNccl);
    try (CudaStream.Scope _ = own.device.poolStream().use()) {
      own.workUntilFailure(args[1], rank, size);
      own.goOn(rank > victim ? rank - 1 : rank, size - 1);
    }
    System.out.println("good");
  }

  private GroupOptions options(String store, int rank, int size, Duration timeout) {
    return GroupOptions.DEFAULT
        .withInitMethod("file://" + directory + "/" + store)
        .withRank(rank)
        .withSize(size)
        .withDevice(Device.cuda(device.index()))
        .withProvider(onNccl ? new NcclBackendProvider() : new CudaBackendProvider())
        .withTimeout(timeout)
        .withSetting(CudaSettings.OVERLAPPING_DEVICES.name(), "1")
        .withSetting("TMPDIR", directory);
  }

  private void workUntilFailure(String where, int rank, int size) {
    ProcessGroup group =
        ProcessGroup.init(options("first", rank, size, onNccl ? NCCL_TIMEOUT : TIMEOUT));
    Tensor tensor = device.tensors().copyOf(Tensor.allocate(DType.FLOAT32, large(where)));
    Tensor received = device.tensors().copyOf(Tensor.allocate(DType.FLOAT32, large(where)));
    SymmetricMemory memory = where.equals("symmetric") ? group.allocateSymmetric(1 << 20) : null;
    long start = 0;
    try {
      for (int round = 0; ; round++) {
        start = System.nanoTime();
        switch (where) {
          case "barrier" -> group.barrier();
          case "symmetric" -> memory.barrier(round % 8, TIMEOUT);
          case "nccl-messages" ->
              group
                  .batch()
                  .send(tensor, (rank + 1) % size, 0)
                  .recv(received, (rank + size - 1) % size, 0)
                  .run();
          case "messages" -> {
            Work send = group.send(tensor, (rank + 1) % size, round % 3, CallOptions.ASYNC);
            Work receive =
                group.recv(received, (rank + size - 1) % size, round % 3, CallOptions.ASYNC);
            send.await();
            receive.await();
          }
          default -> group.allReduce(tensor, ReduceOp.SUM, CallOptions.DEFAULT).await();
        }
        if (round == 0) {
          System.out.println("ready");
        }
      }
    } catch (TuttiException e) {
      System.out.printf(
          Locale.ROOT,
          "failed after %d ms: %s%n",
          (System.nanoTime() - start) / 1_000_000,
          e.getMessage());
    }
    start = System.nanoTime();
    if (memory != null) {
      memory.close();
    }
    group.close();
    System.out.printf(Locale.ROOT, "closed in %d ms%n", (System.nanoTime() - start) / 1_000_000);
  }

  private static int large(String where) {
    return where.equals("large") ? 16 << 20 : 1000;
  }

  private void goOn(int rank, int size) {
    try (ProcessGroup group =
        ProcessGroup.init(options("second", rank, size, Duration.ofSeconds(20)))) {
      if (onNccl) {
        Tensor sum = device.tensors().copyOf(Tensor.of(rank + 1));
        group.allReduce(sum);
        int expected = size * (size + 1) / 2;
        if (device.tensors().toHost(sum).toIntArray()[0] != expected) {
          throw new AssertionError("a wrong sum after a failure");
        }
      } else {
        new OperationChecks(group, device).all(100);
      }
      group.store().barrier("done", size, Duration.ofSeconds(20));
    }
  }
}
