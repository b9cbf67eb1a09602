package dev.tutti.cuda;

import dev.tutti.CallOptions;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;

/**
 * Times all-reduce of CUDA and host tensors in a Gloo group, as one rank defined by the
 * environment. Prints the median time until the result of a call is on the device, in microseconds.
 * The arguments are the sizes in bytes. After {@code --ops} they are the total sizes of the parts
 * of all ranks (1 MiB and 64 MiB if none are given), for which it times an all-gather, a
 * reduce-scatter, a gather and a scatter. After {@code --held} it also prints how long a call
 * blocks its thread.
 */
final class GpuGlooTimes {
  private static final List<String> SIZES_OF_OPS = List.of("1048576", "67108864");
  private static final Duration LONG = Duration.ofMinutes(1);

  private GpuGlooTimes() {}

  public static void main(String[] args) {
    int local = Integer.parseInt(System.getenv("LOCAL_RANK")) % Cuda.get().deviceCount();
    CudaDevice device = Cuda.get().device(local);
    GroupOptions options = GroupOptions.DEFAULT.withBackend("gloo").withDevice(Device.cuda(local));
    try (CudaStream.Scope _ = device.poolStream().use();
        ProcessGroup group = ProcessGroup.init(options)) {
      if (args.length > 0 && args[0].equals("--ops")) {
        List<String> sizes = Arrays.asList(args).subList(1, args.length);
        GpuGlooOpTimes times = new GpuGlooOpTimes(group, device);
        for (String arg : sizes.isEmpty() ? SIZES_OF_OPS : sizes) {
          times.print(Integer.parseInt(arg));
        }
        return;
      }
      if (args.length > 0 && args[0].equals("--held")) {
        for (String arg : Arrays.asList(args).subList(1, args.length)) {
          printHeld(group, device, Integer.parseInt(arg));
        }
        return;
      }
      for (String arg : args) {
        int bytes = Integer.parseInt(arg);
        check(group, device, bytes / Float.BYTES);
        Tensor host = Tensor.of(new float[bytes / Float.BYTES]).copy();
        Tensor onDevice = device.tensors().copyOf(host);
        double ofDevice = medians(group, device, onDevice, bytes, true)[1];
        double ofHost = medians(group, device, host, bytes, true)[1];
        if (group.rank() == 0) {
          System.out.printf("tutti %d bytes: cuda %.1f us, cpu %.1f us%n", bytes, ofDevice, ofHost);
        }
      }
    }
  }

  private static void check(ProcessGroup group, CudaDevice device, int count) {
    float[] values = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = i % 1000 * (group.rank() + 1);
    }
    Tensor host = Tensor.of(values);
    Tensor onDevice = device.tensors().copyOf(host);
    group.allReduce(host);
    group.allReduce(onDevice);
    int sum = group.size() * (group.size() + 1) / 2;
    for (float[] sums :
        List.of(host.toFloatArray(), device.tensors().toHost(onDevice).toFloatArray())) {
      for (int i = 0; i < count; i++) {
        if (sums[i] != i % 1000 * sum) {
          throw new AssertionError("sum of element " + i + ": " + sums[i]);
        }
      }
    }
  }

  private static void printHeld(ProcessGroup group, CudaDevice device, int bytes) {
    check(group, device, bytes / Float.BYTES);
    Tensor tensor = device.tensors().copyOf(Tensor.of(new float[bytes / Float.BYTES]).copy());
    double[] first = medians(group, device, tensor, bytes, true);
    double[] second = medians(group, device, tensor, bytes, false);
    if (group.rank() == 0) {
      System.out.printf(
          "tutti %d bytes: held %.1f us of %.1f, asynchronous %.1f us of %.1f%n",
          bytes, first[0], first[1], second[0], second[1]);
    }
  }

  /**
   * Returns how long a call blocks its thread and when its result is available, in microseconds.
   */
  private static double[] medians(
      ProcessGroup group, CudaDevice device, Tensor tensor, int bytes, boolean isSynchronous) {
    int count = bytes <= 1 << 16 ? 2000 : bytes <= 1 << 22 ? 200 : 20;
    int warmUp = count / 4 + 3;
    double[] held = new double[count];
    double[] whole = new double[count];
    for (int i = -warmUp; i < count; i++) {
      if (i == 0) {
        group.barrier();
      }
      long start = System.nanoTime();
      if (isSynchronous) {
        group.allReduce(tensor);
      } else {
        group.allReduce(tensor, ReduceOp.SUM, CallOptions.ASYNC).synchronize();
      }
      long returned = System.nanoTime();
      if (!tensor.device().isCpu()) {
        device.currentStream().await(LONG);
      }
      if (i >= 0) {
        held[i] = (returned - start) / 1e3;
        whole[i] = (System.nanoTime() - start) / 1e3;
      }
    }
    Arrays.sort(held);
    Arrays.sort(whole);
    return new double[] {held[count / 2], whole[count / 2]};
  }
}
