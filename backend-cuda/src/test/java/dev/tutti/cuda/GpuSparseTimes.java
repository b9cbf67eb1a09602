package dev.tutti.cuda;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * Times all-reduce of sparse CUDA and host tensors in a Gloo group, as one rank defined by the
 * environment. Prints the median time until the result of a call is on the device, in microseconds.
 * The entries are rows of 64 elements at random indices below a million.
 */
final class GpuSparseTimes {
  private static final long PLACES = 1_000_000;
  private static final long ROW = 64;

  private GpuSparseTimes() {}

  public static void main(String[] args) {
    int local = Integer.parseInt(System.getenv("LOCAL_RANK")) % Cuda.get().deviceCount();
    CudaDevice device = Cuda.get().device(local);
    GroupOptions options = GroupOptions.DEFAULT.withBackend("gloo").withDevice(Device.cuda(local));
    try (CudaStream.Scope _ = device.poolStream().use();
        ProcessGroup group = ProcessGroup.init(options)) {
      for (String arg : args) {
        int entries = Integer.parseInt(arg);
        long[] places = new SplittableRandom(group.rank()).longs(entries, 0, PLACES).toArray();
        Tensor indices = Tensor.of(places).view(1, entries).copy();
        Tensor ones = Tensor.allocate(DType.FLOAT32, entries, ROW).fill(1);
        Tensor host = Tensor.sparse(indices, ones, PLACES, ROW);
        CudaTensors tensors = device.tensors();
        Tensor onDevice = Tensor.sparse(tensors.copyOf(indices), tensors.copyOf(ones), PLACES, ROW);
        check(sum(group, host), sum(group, onDevice), tensors);
        double ofDevice = median(group, onDevice, entries);
        double ofHost = median(group, host, entries);
        if (group.rank() == 0) {
          System.out.printf(
              "tutti %d entries: cuda %.1f us, cpu %.1f us%n", entries, ofDevice, ofHost);
        }
      }
    }
  }

  private static Tensor sum(ProcessGroup group, Tensor sparse) {
    var work = group.allReduce(sparse, ReduceOp.SUM, CallOptions.DEFAULT);
    work.await();
    return work.result().getFirst();
  }

  private static void check(Tensor host, Tensor onDevice, CudaTensors tensors) {
    boolean isRight =
        Arrays.equals(bytes(host.indices()), bytes(tensors.toHost(onDevice.indices())))
            && Arrays.equals(bytes(host.values()), bytes(tensors.toHost(onDevice.values())));
    if (!isRight) {
      throw new AssertionError("the sums of host and device differ");
    }
  }

  private static byte[] bytes(Tensor tensor) {
    return tensor.segment().toArray(ValueLayout.JAVA_BYTE);
  }

  private static double median(ProcessGroup group, Tensor tensor, int entries) {
    int count = entries <= 10_000 ? 60 : entries <= 100_000 ? 20 : 5;
    int warm = count / 4 + 2;
    double[] times = new double[count];
    for (int i = -warm; i < count; i++) {
      group.barrier();
      long start = System.nanoTime();
      Tensor _ = sum(group, tensor);
      times[Math.max(i, 0)] = (System.nanoTime() - start) / 1e3;
    }
    Arrays.sort(times);
    return times[count / 2];
  }
}
