package dev.tutti.cuda;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.cuda.element.DeviceCopy;
import dev.tutti.cuda.provider.CudaSession;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.optimizer.AdamW;
import dev.tutti.gradients.optimizer.OptimizerOptions;
import dev.tutti.gradients.optimizer.ShardedOptimizer;
import java.nio.file.Files;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

/**
 * Times steps of AdamW on this machine's first GPU, in a group of one, beside a copy of the same
 * memory. Prints JSON lines: milliseconds of device time, and the bytes that must be read and
 * written in each second.
 *
 * <p>Usage: {@code GpuOptimizerTimes LAYERS SIZE}, for that many float32 matrices of that side.
 */
final class GpuOptimizerTimes {
  private static final Duration LIMIT = Duration.ofSeconds(60);
  private static final int UNCOUNTED = 2;
  private static final int SERIES = 5;
  private static final int STEPS = 20;

  /** Reads a parameter, its gradient and both moments; writes the parameter and the moments. */
  private static final int ADAMW_BYTES = 7 * Float.BYTES;

  private final CudaDevice device;
  private final ProcessGroup group;
  private final int layers;
  private final int size;
  private final long numel;

  private GpuOptimizerTimes(CudaDevice device, ProcessGroup group, int layers, int size) {
    this.device = device;
    this.group = group;
    this.layers = layers;
    this.size = size;
    this.numel = (long) layers * size * size;
  }

  public static void main(String[] args) throws Exception {
    CudaDevice device = Cuda.get().device(0);
    GroupOptions options =
        GroupOptions.DEFAULT
            .withInitMethod("file://" + Files.createTempDirectory("optimizer").resolve("store"))
            .withRank(0)
            .withSize(1)
            .withDevice(Device.cuda(0))
            .withBackend("cpu:gloo,cuda:cuda");
    try (CudaStream.Scope _ = device.poolStream().use();
        ProcessGroup group = ProcessGroup.init(options)) {
      int layers = Integer.parseInt(args[0]);
      new GpuOptimizerTimes(device, group, layers, Integer.parseInt(args[1])).run();
    }
  }

  private void run() {
    Tensor source = device.tensors().allocate(DType.FLOAT32, numel);
    Tensor target = device.tensors().allocate(DType.FLOAT32, numel);
    print("copy", 2 * Float.BYTES, () -> DeviceCopy.copy(device, target, source));
    adamW("adamw", OptimizerOptions.DEFAULT);
    adamW("adamw-flat", OptimizerOptions.DEFAULT.withFlatParameters());
  }

  private void adamW(String what, OptimizerOptions more) {
    List<Tensor> parameters = IntStream.range(0, layers).mapToObj(_ -> matrix()).toList();
    try (ShardedOptimizer optimizer =
        new ShardedOptimizer(group, parameters, ReducerOptions.DEFAULT, new AdamW(1e-4), more)) {
      Runnable step =
          () -> {
            for (int i = layers - 1; i >= 0; i--) {
              optimizer.reducer().ready(i);
            }
            optimizer.step();
          };
      print(what, ADAMW_BYTES, step);
      try (CudaSession session = new CudaSession(device);
          var graph = session.record(step)) {
        print(what + "-graph", ADAMW_BYTES, graph::replay);
      }
    }
  }

  private Tensor matrix() {
    return device.tensors().copyOf(Tensor.allocate(DType.FLOAT32, size, size).fill(1));
  }

  private void print(String what, int bytesPerElement, Runnable step) {
    double[] times = series(step);
    double median = times[SERIES / 2];
    System.out.printf(
        Locale.ROOT,
        "{\"peer\": \"tutti\", \"what\": \"%s\", \"elements\": %d, \"ms\": %.3f, \"least_ms\":"
            + " %.3f, \"most_ms\": %.3f, \"gb_per_s\": %.0f}%n",
        what,
        numel,
        median,
        times[0],
        times[SERIES - 1],
        numel * bytesPerElement / median / 1e6);
  }

  /** Returns milliseconds per step, sorted, one for each series. */
  private double[] series(Runnable step) {
    double[] times = new double[SERIES];
    CudaStream stream = device.currentStream();
    try (CudaSession session = new CudaSession(device)) {
      CudaStream own = device.currentStream();
      for (int s = -UNCOUNTED; s < SERIES; s++) {
        stream.await(LIMIT);
        Duration time =
            session.time(
                () -> {
                  try (CudaStream.Scope _ = stream.use()) {
                    for (int i = 0; i < STEPS; i++) {
                      step.run();
                    }
                  }
                  own.waitFor(stream);
                },
                LIMIT);
        times[Math.max(s, 0)] = time.toNanos() / 1e6 / STEPS;
      }
    }
    Arrays.sort(times);
    return times;
  }
}
