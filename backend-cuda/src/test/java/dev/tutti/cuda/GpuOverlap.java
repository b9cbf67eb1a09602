package dev.tutti.cuda;

import com.sun.management.ThreadMXBean;
import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Setting;
import dev.tutti.Tensor;
import dev.tutti.cuda.provider.CudaSession;
import dev.tutti.cuda.settings.CudaSettings;
import dev.tutti.gradients.BucketAllocator;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.hook.Compression;
import dev.tutti.spi.DeviceSession.Recording;
import java.io.BufferedWriter;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import org.jspecify.annotations.Nullable;

/**
 * Times steps of data-parallel training as one rank: square linear layers with float32 weights, of
 * which bfloat16 copies are multiplied by cuBLAS as PyTorch's autocast does, and gradients that a
 * reducer averages in one of several ways. Checks the means, and rank 0 writes JSON lines.
 *
 * <p>Arguments: the output file, a new file for the rendezvous, the rank, the number of ranks, the
 * backend for devices, the path of cuBLAS, the number of layers, their size, the size of buckets in
 * MiB, and what to time. The properties {@code overlap.series} and {@code overlap.steps} say how
 * many series are timed, of how many steps.
 */
public final class GpuOverlap {
  private static final int SERIES = Integer.getInteger("overlap.series", 5);
  private static final int UNCOUNTED = 2;
  private static final int STEPS = Integer.getInteger("overlap.steps", 20);
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private static final Duration LIMIT = Duration.ofMinutes(2);

  private final Path output;
  private final String backend;
  private final ProcessGroup group;
  private final CudaDevice device;
  private final Path library;
  private final long bucketBytes;
  private final int layers;
  private final int size;
  private final List<Tensor> weights = new ArrayList<>();
  private final List<Tensor> halves = new ArrayList<>();
  private final List<Tensor> activations = new ArrayList<>();
  private final List<Tensor> halfGradients = new ArrayList<>();
  private final List<Tensor> gradients = new ArrayList<>();
  private final Tensor outputGradient;
  private final Tensor[] inputGradients;
  private long leastHeap;

  private GpuOverlap(String[] args, ProcessGroup group, CudaDevice device) {
    this.output = Path.of(args[0]);
    this.backend = args[4];
    this.group = group;
    this.device = device;
    this.library = Path.of(args[5]);
    this.layers = Integer.parseInt(args[6]);
    this.size = Integer.parseInt(args[7]);
    this.bucketBytes = Long.parseLong(args[8]) << 20;
    Random random = new Random(group.rank());
    activations.add(random(random, 1));
    for (int i = 0; i < layers; i++) {
      weights.add(allocate(DType.FLOAT32));
      copy(weights.get(i), random(random, 1 / Math.sqrt(size)));
      halves.add(allocate(DType.BFLOAT16));
      activations.add(allocate(DType.BFLOAT16));
      halfGradients.add(allocate(DType.BFLOAT16));
    }
    outputGradient = random(random, 1 / Math.sqrt(size));
    inputGradients = new Tensor[] {allocate(DType.BFLOAT16), allocate(DType.BFLOAT16)};
  }

  /** Runs one rank. */
  public static void main(String[] args) throws Exception {
    int rank = Integer.parseInt(args[2]);
    CudaDevice device = Cuda.get().device(rank % Cuda.get().deviceCount());
    GroupOptions options =
        GroupOptions.DEFAULT
            .withInitMethod("file://" + args[1])
            .withRank(rank)
            .withSize(Integer.parseInt(args[3]))
            .withDevice(Device.cuda(device.index()))
            .withBackend("cpu:gloo,cuda:" + args[4])
            .withSetting(CudaSettings.OVERLAPPING_DEVICES.name(), "1")
            .withTimeout(LIMIT);
    try (CudaStream.Scope _ = device.poolStream().use();
        ProcessGroup group = ProcessGroup.init(options)) {
      GpuOverlap all = new GpuOverlap(args, group, device);
      for (String what : Arrays.asList(args).subList(9, args.length)) {
        all.measure(what);
      }
      group.store().barrier("overlap-end", group.size(), LIMIT);
    }
  }

  private Tensor allocate(DType type) {
    return device.tensors().allocate(type, size, size);
  }

  private static void copy(Tensor target, Tensor source) {
    BucketAllocator.standard().convert(target, source);
  }

  /** Returns random numbers; only 1 Mi of them differ. */
  private Tensor random(Random random, double deviation) {
    float[] values = new float[Math.min(1 << 20, size * size)];
    for (int i = 0; i < values.length; i++) {
      values[i] = (float) (random.nextGaussian() * deviation);
    }
    Tensor some = device.tensors().copyOf(Tensor.of(values));
    Tensor all = allocate(DType.BFLOAT16);
    Tensor flat = all.view((long) size * size);
    for (long i = 0; i < flat.numel(); i += values.length) {
      copy(flat.narrow(0, i, values.length), some);
    }
    return all;
  }

  /** The forward and backward pass in the current stream. */
  private final class Computation {
    private final GpuCublas cublas = new GpuCublas(library, device.currentStream());

    private void step(@Nullable GradientReducer reducer) {
      for (int i = 0; i < layers; i++) {
        copy(halves.get(i), weights.get(i));
        cublas.forward(activations.get(i), halves.get(i), activations.get(i + 1));
      }
      Tensor gradient = outputGradient;
      for (int i = layers - 1; i >= 0; i--) {
        if (i > 0) {
          cublas.inputGradient(gradient, halves.get(i), inputGradients[i % 2]);
        }
        cublas.weightGradient(gradient, activations.get(i), halfGradients.get(i));
        copy(reducer == null ? gradients.get(i) : reducer.gradient(i), halfGradients.get(i));
        if (reducer != null) {
          reducer.ready(i);
        }
        gradient = inputGradients[i % 2];
      }
      if (reducer != null) {
        reducer.await();
      }
    }
  }

  private void measure(String what) throws Exception {
    ReducerOptions options = ReducerOptions.DEFAULT.withBucketBytes(1 << 20, bucketBytes);
    switch (what) {
      case "alone" -> alone();
      case "inline" -> reduced(what, options.withoutOverlap(), true);
      case "overlap" -> reduced(what, options, true);
      case "overlap-bf16" -> reduced(what, options.withHook(Compression.bfloat16()), true);
      case "reductions" -> reduced(what, options, false);
      case "graph" -> graph(options);
      default -> throw new IllegalArgumentException("nothing is named " + what);
    }
  }

  private void alone() throws Exception {
    for (int i = 0; i < layers; i++) {
      gradients.add(allocate(DType.FLOAT32));
    }
    Computation computation = new Computation();
    write("alone", series(() -> computation.step(null)), 0);
    try (CudaSession session = new CudaSession(device)) {
      Computation captured = new Computation();
      captured.step(null);
      try (Recording graph = session.record(() -> captured.step(null))) {
        write("alone-graph", series(graph::replay), 0);
        device.currentStream().await(LIMIT);
      }
    }
    gradients.clear();
  }

  private void reduced(String what, ReducerOptions options, boolean computes) throws Exception {
    Computation computation = new Computation();
    try (GradientReducer reducer = new GradientReducer(group, weights, options)) {
      double[] times =
          series(
              () -> {
                if (computes) {
                  computation.step(reducer);
                } else {
                  markAll(reducer);
                }
              });
      double error = computes ? largestError(reducer) : 0;
      write(what, times, error);
      device.currentStream().await(LIMIT);
      group.store().barrier("done " + what, group.size(), LIMIT);
    }
  }

  private void markAll(GradientReducer reducer) {
    for (int i = layers - 1; i >= 0; i--) {
      reducer.ready(i);
    }
    reducer.await();
  }

  private void graph(ReducerOptions options) throws Exception {
    try (CudaSession session = new CudaSession(device)) {
      Computation computation = new Computation();
      GradientReducer reducer = new GradientReducer(group, weights, options);
      for (int i = 0; i < 3; i++) {
        computation.step(reducer);
      }
      try (Recording graph = session.record(() -> computation.step(reducer))) {
        double[] times = series(graph::replay);
        write("graph", times, largestError(reducer));
        device.currentStream().await(LIMIT);
        group.store().barrier("done graph", group.size(), LIMIT);
      }
      reducer.close();
    }
  }

  /** Compares the first, a middle and the last mean with those of other all-reduces. */
  private double largestError(GradientReducer reducer) {
    double largest = 0;
    Tensor expected = allocate(DType.FLOAT32);
    for (int i : new int[] {0, layers / 2, layers - 1}) {
      copy(expected, halfGradients.get(i));
      group.allReduce(expected, ReduceOp.AVG);
      float[] right = device.tensors().toHost(expected).toFloatArray();
      float[] found = device.tensors().toHost(reducer.gradient(i)).toFloatArray();
      double scale = 0;
      for (int k = 0; k < right.length; k += 101) {
        scale = Math.max(scale, Math.abs(right[k]));
        double difference = Math.abs(found[k] - right[k]);
        largest = Math.max(largest, Double.isNaN(difference) ? Double.MAX_VALUE : difference);
      }
      if (!(scale > 0) || !(largest <= scale / 64)) {
        throw new AssertionError(
            "a mean of layer %d differs by %s, of numbers up to %s".formatted(i, largest, scale));
      }
    }
    return largest;
  }

  /** Returns milliseconds per step of the slowest rank, for each series. */
  private double[] series(Runnable step) throws Exception {
    double[] times = new double[SERIES];
    leastHeap = Long.MAX_VALUE;
    CudaStream stream = device.currentStream();
    try (CudaSession session = new CudaSession(device)) {
      CudaStream own = device.currentStream();
      for (int s = -UNCOUNTED; s < SERIES; s++) {
        stream.await(LIMIT);
        group.store().barrier("series", group.size(), LIMIT);
        own.waitFor(stream);
        Duration time =
            session.time(
                () -> {
                  try (CudaStream.Scope _ = stream.use()) {
                    long before = THREADS.getCurrentThreadAllocatedBytes();
                    for (int i = 0; i < STEPS; i++) {
                      step.run();
                    }
                    long bytes = THREADS.getCurrentThreadAllocatedBytes() - before;
                    leastHeap = Math.min(leastHeap, bytes / STEPS);
                  }
                  own.waitFor(stream);
                },
                LIMIT);
        Tensor slowest = Tensor.of(time.toNanos() / 1e6 / STEPS);
        group.allReduce(slowest, ReduceOp.MAX);
        if (s >= 0) {
          times[s] = slowest.getDouble(0);
        }
      }
    }
    Arrays.sort(times);
    return times;
  }

  private static String setting(Setting<?> setting) {
    return System.getenv().getOrDefault(setting.name(), "default");
  }

  private void write(String what, double[] times, double error) throws Exception {
    if (group.rank() == 0) {
      String line =
          String.format(
              Locale.ROOT,
              "{\"peer\": \"tutti\", \"what\": \"%s\", \"backend\": \"%s\", \"lanes\": \"%s\","
                  + " \"copies\": \"%s\", \"piece\": \"%s\","
                  + " \"ranks\": %d, \"gpus\": %d, \"layers\": %d, \"size\": %d, \"bucket_mib\":"
                  + " %d, \"ms\": %.3f, \"least_ms\": %.3f, \"most_ms\": %.3f, \"largest_error\":"
                  + " %.3g, \"heap_bytes\": %d}",
              what,
              backend,
              setting(CudaSettings.LANES),
              setting(CudaSettings.COPIES_BYTES),
              setting(CudaSettings.COPIES_PIECE_BYTES),
              group.size(),
              Cuda.get().deviceCount(),
              layers,
              size,
              bucketBytes >> 20,
              times[SERIES / 2],
              times[0],
              times[SERIES - 1],
              error,
              leastHeap);
      try (BufferedWriter writer =
          Files.newBufferedWriter(output, StandardOpenOption.CREATE, StandardOpenOption.APPEND)) {
        writer.write(line);
        writer.newLine();
      }
      System.out.println(line);
    }
  }
}
