package dev.tutti.cuda;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.cuda.nccl.NcclLibrary;
import dev.tutti.cuda.provider.NcclBackendProvider;
import dev.tutti.spi.BackendProvider;
import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;

/**
 * Times groups on NCCL: setup, small all-reduces, groups of the same ranks, message round trips.
 * The argument is the number of ranks, which then are threads. Otherwise the arguments are the
 * number of ranks, the rank of this process, and a nonexistent file for the rendezvous of the
 * processes. Checks the contents of the messages.
 */
final class GpuNcclTimes {
  private static final int SERIES = 5;

  private GpuNcclTimes() {}

  public static void main(String[] args) throws Exception {
    BackendProvider provider = new NcclBackendProvider();
    System.out.println(NcclLibrary.get(Settings.fromEnvironment()).describe());
    long before = System.nanoTime();
    int size = Integer.parseInt(args[0]);
    if (args.length == 1) {
      new CudaRanks(Cuda.get())
          .on(provider)
          .within(Duration.ofSeconds(60))
          .run(size, (group, device) -> time(group, device, before));
      return;
    }
    int rank = Integer.parseInt(args[1]);
    CudaDevice device = Cuda.get().device(rank);
    GroupOptions options =
        GroupOptions.DEFAULT
            .withInitMethod("file://" + args[2])
            .withRank(rank)
            .withSize(size)
            .withDevice(Device.cuda(rank))
            .withProvider(provider)
            .withTimeout(Duration.ofSeconds(60));
    try (CudaStream.Scope _ = device.poolStream().use();
        ProcessGroup group = ProcessGroup.init(options)) {
      time(group, device, before);
      group.store().barrier("done", size, Duration.ofSeconds(60));
    }
  }

  private static void time(ProcessGroup group, CudaDevice device, long before) {
    print(group, "set-up, ms", (System.nanoTime() - before) / 1e6);
    collectives(group, device);
    split(group);
    for (int floats : new int[] {2, 1 << 18, 1 << 24}) {
      messages(group, device, floats);
    }
  }

  private static void print(ProcessGroup group, String what, double value) {
    if (group.rank() == 0) {
      System.out.printf(Locale.ROOT, "%s: %.1f%n", what, value);
    }
  }

  private static void split(ProcessGroup group) {
    double[] times = new double[SERIES];
    for (int s = 0; s < SERIES; s++) {
      group.barrier();
      long start = System.nanoTime();
      try (ProcessGroup _ = group.split(0, group.rank()).orElseThrow()) {
        times[s] = (System.nanoTime() - start) / 1e6;
      }
    }
    Arrays.sort(times);
    print(group, "a group of the same ranks, ms", times[SERIES / 2]);
  }

  private static void collectives(ProcessGroup group, CudaDevice device) {
    Tensor tensor = device.tensors().allocate(DType.FLOAT32, 256);
    double[] times = new double[SERIES];
    for (int s = -2; s < SERIES; s++) {
      int calls = 500;
      device.currentStream().await(Duration.ofSeconds(20));
      long start = System.nanoTime();
      for (int i = 0; i < calls; i++) {
        group.allReduce(tensor);
      }
      device.currentStream().await(Duration.ofSeconds(20));
      if (s >= 0) {
        times[s] = (System.nanoTime() - start) / 1e3 / calls;
      }
    }
    Arrays.sort(times);
    print(group, "all-reduce of 1 KiB, us", times[SERIES / 2]);
  }

  /** Sends around the ring: each rank sends to the next one while it receives. */
  private static void messages(ProcessGroup group, CudaDevice device, int floats) {
    int rank = group.rank();
    int size = group.size();
    float[] values = new float[floats];
    Arrays.fill(values, rank + 1f);
    Tensor sent = device.tensors().copyOf(Tensor.of(values));
    Tensor received = device.tensors().allocate(DType.FLOAT32, floats);
    int calls = floats > 1 << 20 ? 20 : 200;
    double[] times = new double[SERIES];
    for (int s = -2; s < SERIES; s++) {
      long start = System.nanoTime();
      for (int i = 0; i < calls; i++) {
        group
            .batch()
            .send(sent, (rank + 1) % size, 0)
            .recv(received, (rank + size - 1) % size, 0)
            .run();
      }
      device.currentStream().await(Duration.ofSeconds(20));
      if (s >= 0) {
        times[s] = (System.nanoTime() - start) / 1e3 / calls;
      }
    }
    Arrays.sort(times);
    float[] result = device.tensors().toHost(received).toFloatArray();
    for (float value : result) {
      if (value != (rank + size - 1) % size + 1f) {
        throw new AssertionError("a message brought " + value);
      }
    }
    print(group, "a message of " + 4L * floats + " bytes around the ring, us", times[SERIES / 2]);
  }
}
