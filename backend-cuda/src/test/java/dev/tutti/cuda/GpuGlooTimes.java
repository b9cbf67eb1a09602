package dev.tutti.cuda;

import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.util.Arrays;
import java.util.List;

/**
 * Times all-reduce of CUDA and of host tensors in a Gloo group, as one rank of the environment.
 * Prints the median of the time of a call whose result is on the device, in microseconds. Arguments
 * are the sizes in bytes; behind {@code --ops} those of the parts of all ranks (1 MiB and 64 MiB
 * without any), for which it times an all-gather, a reduce-scatter, a gather and a scatter.
 */
final class GpuGlooTimes {
  private static final List<String> SIZES_OF_OPS = List.of("1048576", "67108864");

  private GpuGlooTimes() {}

  public static void main(String[] args) {
    int local = Integer.parseInt(System.getenv("LOCAL_RANK")) % Cuda.get().deviceCount();
    CudaDevice device = Cuda.get().device(local);
    GroupOptions options =
        GroupOptions.defaults().withBackend("gloo").withDevice(Device.cuda(local));
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
      for (String arg : args) {
        int bytes = Integer.parseInt(arg);
        check(group, device, bytes / Float.BYTES);
        Tensor host = Tensor.of(new float[bytes / Float.BYTES]).copy();
        Tensor onDevice = device.tensors().copyOf(host);
        double ofDevice = median(group, onDevice, bytes);
        double ofHost = median(group, host, bytes);
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

  private static double median(ProcessGroup group, Tensor tensor, int bytes) {
    int count = bytes <= 1 << 16 ? 2000 : bytes <= 1 << 22 ? 200 : 20;
    for (int i = 0; i < count / 4 + 3; i++) {
      group.allReduce(tensor);
    }
    group.barrier();
    double[] times = new double[count];
    for (int i = 0; i < count; i++) {
      long start = System.nanoTime();
      group.allReduce(tensor);
      times[i] = (System.nanoTime() - start) / 1e3;
    }
    Arrays.sort(times);
    return times[count / 2];
  }
}
