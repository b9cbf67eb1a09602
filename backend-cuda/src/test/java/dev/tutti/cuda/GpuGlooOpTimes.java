package dev.tutti.cuda;

import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntUnaryOperator;

/** Times collectives that move a part per rank, for CUDA and host tensors. */
final class GpuGlooOpTimes {
  private static final List<String> NAMES =
      List.of("allGatherInto", "reduceScatterInto", "gather", "scatter");

  private static final Duration LONG = Duration.ofMinutes(1);

  private final ProcessGroup group;
  private final CudaDevice device;
  private final int rank;
  private final int size;

  GpuGlooOpTimes(ProcessGroup group, CudaDevice device) {
    this.group = group;
    this.device = device;
    this.rank = group.rank();
    this.size = group.size();
  }

  /**
   * Prints the median time until the result of a call is on the device, in microseconds.
   *
   * @param bytes the total size of the parts of all ranks
   */
  void print(int bytes) {
    for (String name : NAMES) {
      double ofDevice = median(name, bytes, true);
      double ofHost = median(name, bytes, false);
      if (rank == 0) {
        System.out.printf(
            "tutti %s %d bytes: cuda %.1f us, cpu %.1f us%n", name, bytes, ofDevice, ofHost);
      }
    }
  }

  private Tensor tensor(int count, boolean onDevice) {
    float[] values = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = i % 1000 * (rank + 1);
    }
    Tensor host = Tensor.of(values).copy();
    return onDevice ? device.tensors().copyOf(host) : host;
  }

  private double median(String name, int bytes, boolean onDevice) {
    int numel = bytes / Float.BYTES / size;
    Tensor part = tensor(numel, onDevice);
    Tensor all = tensor(numel * size, onDevice);
    List<Tensor> parts = new ArrayList<>();
    for (int r = 0; r < size; r++) {
      parts.add(all.narrow(0, (long) r * numel, numel));
    }
    // Rank 0 takes the times, and receives a result in each collective.
    int last = size - 1;
    Runnable call =
        switch (name) {
          case "allGatherInto" -> () -> group.allGatherInto(all, part);
          case "reduceScatterInto" -> () -> group.reduceScatterInto(part, all, ReduceOp.SUM);
          case "gather" -> () -> group.gather(rank == 0 ? parts : List.of(), part, 0);
          default -> () -> group.scatter(part, rank == last ? parts : List.of(), last);
        };
    call.run();
    switch (name) {
      case "allGatherInto" -> check(name, all, i -> i % numel % 1000 * (i / numel + 1));
      case "reduceScatterInto" ->
          check(name, part, i -> (rank * numel + i) % 1000 * (size * (size + 1) / 2));
      case "gather" -> {
        if (rank == 0) {
          check(name, all, i -> i % numel % 1000 * (i / numel + 1));
        }
      }
      default -> check(name, part, i -> (rank * numel + i) % 1000 * size);
    }
    Runnable done = onDevice ? () -> device.currentStream().await(LONG) : () -> {};
    return median(
        () -> {
          call.run();
          done.run();
        },
        bytes <= 1 << 22 ? 200 : 20);
  }

  private void check(String name, Tensor tensor, IntUnaryOperator expected) {
    Tensor host = tensor.device().isCpu() ? tensor : device.tensors().toHost(tensor);
    float[] values = host.toFloatArray();
    for (int i = 0; i < values.length; i++) {
      if (values[i] != expected.applyAsInt(i)) {
        throw new AssertionError(name + ", element " + i + ": " + values[i]);
      }
    }
  }

  private double median(Runnable call, int count) {
    for (int i = 0; i < count / 4 + 3; i++) {
      call.run();
    }
    group.barrier();
    double[] times = new double[count];
    for (int i = 0; i < count; i++) {
      long start = System.nanoTime();
      call.run();
      times[i] = (System.nanoTime() - start) / 1e3;
    }
    Arrays.sort(times);
    return times[count / 2];
  }
}
