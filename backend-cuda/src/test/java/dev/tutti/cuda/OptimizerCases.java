package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.provider.CudaSession;
import dev.tutti.gradients.BucketAllocator;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.optimizer.AdamW;
import dev.tutti.gradients.optimizer.OptimizerOptions;
import dev.tutti.gradients.optimizer.Sgd;
import dev.tutti.gradients.optimizer.ShardUpdate;
import dev.tutti.gradients.optimizer.ShardedOptimizer;
import dev.tutti.spi.DeviceSession.Recording;
import dev.tutti.state.StatePart;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/** Compares optimizers on devices with those on the host, and with PyTorch's formulas. */
final class OptimizerCases {
  private static final double CLOSE = 1e-6;
  private static final int STEPS = 6;
  private static final long[][] SHAPES = {{5, 7}, {1030}, {3}, {40, 4}};
  private static final int BAD_STEP = 3;

  private final CudaRanks ranks;
  private final BucketAllocator allocator;

  OptimizerCases(CudaRanks ranks, BucketAllocator allocator) {
    this.ranks = ranks;
    this.allocator = allocator;
  }

  private ReducerOptions options() {
    return ReducerOptions.DEFAULT.withAllocator(allocator).withBucketBytes(200, 3000);
  }

  /** Numbers of seven bits, so that all types hold them and means of two exactly. */
  private static Tensor random(DType dtype, long seed, long... shape) {
    Tensor tensor = Tensor.allocate(dtype, shape);
    Random random = new Random(seed);
    for (long i = 0; i < tensor.numel(); i++) {
      tensor.setDouble(i, (random.nextInt(127) - 63) / 64.0);
    }
    return tensor;
  }

  private static List<Tensor> parameters(DType dtype) {
    List<Tensor> all = new ArrayList<>();
    for (int i = 0; i < SHAPES.length; i++) {
      all.add(random(dtype, i, SHAPES[i]));
    }
    return all;
  }

  private static Tensor gradient(DType dtype, int parameter, int step, int rank) {
    return random(dtype, 1000L * step + 100L * parameter + rank, SHAPES[parameter]);
  }

  private static List<Tensor> onDevice(CudaDevice device, List<Tensor> all) {
    return all.stream().map(each -> device.tensors().copyOf(each)).toList();
  }

  private static Tensor onHost(CudaDevice device, Tensor tensor) {
    return tensor.device().isCpu() ? tensor : device.tensors().toHost(tensor);
  }

  private static void backward(
      ShardedOptimizer optimizer, CudaDevice device, int step, int rank, boolean isBad) {
    double scale = onHost(device, optimizer.lossScale()).getDouble(0);
    for (int i = SHAPES.length - 1; i >= 0; i--) {
      Tensor target = optimizer.reducer().gradient(i);
      Tensor values = gradient(target.dtype(), i, step, rank);
      for (long k = 0; k < values.numel(); k++) {
        values.setDouble(k, values.getDouble(k) * scale);
      }
      if (isBad && i == 1) {
        values.setDouble(77, Double.POSITIVE_INFINITY);
      }
      if (target.device().isCpu()) {
        target.copyFrom(values);
      } else {
        device.tensors().copyFromHost(target, values);
      }
      optimizer.reducer().ready(i);
    }
  }

  /** Compares each kind of update, of float32 parameters. */
  void updates() throws Exception {
    for (int size : new int[] {1, 2}) {
      for (Supplier<ShardUpdate> update : kinds()) {
        compare(size, DType.FLOAT32, update, OptimizerOptions.DEFAULT, false);
      }
    }
  }

  private static List<Supplier<ShardUpdate>> kinds() {
    return List.of(
        () -> new AdamW(0.01),
        () -> new AdamW(0.02, 0.8, 0.95, 1e-6, 0.3),
        () -> new Sgd(0.1),
        () -> new Sgd(0.1, 0.9, 0.2, 0.01, false),
        () -> new Sgd(0.1, 0.9, 0, 0.01, true));
  }

  /** Compares the float32 master copies of shorter parameters, and what is rounded from them. */
  void masterCopies() throws Exception {
    compare(2, DType.BFLOAT16, () -> new AdamW(0.01), OptimizerOptions.DEFAULT, false);
    compare(2, DType.FLOAT16, () -> new AdamW(0.01), OptimizerOptions.DEFAULT, false);
    compare(2, DType.BFLOAT16, () -> new Sgd(0.1), OptimizerOptions.DEFAULT, false);
  }

  /** Compares clipping and loss scales, with a step that must change nothing. */
  void clippingAndLossScale() throws Exception {
    OptimizerOptions clips = OptimizerOptions.DEFAULT.withClipping(3);
    OptimizerOptions scales = OptimizerOptions.DEFAULT.withLossScale(1024, 2, 0.5, 2);
    for (boolean isBad : new boolean[] {false, true}) {
      compare(2, DType.FLOAT32, () -> new AdamW(0.01), clips, isBad);
      compare(2, DType.FLOAT32, () -> new Sgd(0.1, 0.9, 0, 0, false), scales, isBad);
      compare(2, DType.BFLOAT16, () -> new AdamW(0.01), scales.withClipping(2), isBad);
    }
  }

  private void compare(
      int size,
      DType dtype,
      Supplier<ShardUpdate> update,
      OptimizerOptions more,
      boolean hasBadStep)
      throws Exception {
    ranks.run(
        size,
        (group, device) -> {
          List<Tensor> whole = parameters(DType.FLOAT32);
          List<Tensor> there = onDevice(device, parameters(dtype));
          List<String> names = IntStream.range(0, SHAPES.length).mapToObj(i -> "p" + i).toList();
          try (ShardedOptimizer host =
                  new ShardedOptimizer(group, whole, ReducerOptions.DEFAULT, update.get(), more);
              ShardedOptimizer onDevice =
                  new ShardedOptimizer(group, there, options(), update.get(), more)) {
            for (int step = 1; step <= STEPS; step++) {
              boolean isBad = hasBadStep && step == BAD_STEP && group.rank() == size - 1;
              backward(host, device, step, group.rank(), isBad);
              host.step();
              backward(onDevice, device, step, group.rank(), isBad);
              onDevice.step();
              assertThat(onDevice.steps()).isEqualTo(host.steps());
              Map<String, Long> counters = onDevice.state(names).counters();
              assertThat(counters).isEqualTo(host.state(names).counters());
              onDevice.state(names).restored(counters);
              assertThat(onHost(device, onDevice.lossScale()).getDouble(0))
                  .isEqualTo(host.lossScale().getDouble(0));
              if (!(hasBadStep && step == BAD_STEP)) {
                assertThat(onDevice.gradientNorm())
                    .isCloseTo(host.gradientNorm(), within(CLOSE * (1 + host.gradientNorm())));
              }
              for (int i = 0; i < SHAPES.length; i++) {
                requireClose(whole.get(i), onHost(device, there.get(i)), step + " " + names.get(i));
              }
              for (StatePart part : onDevice.state(names).parts()) {
                requireMaster(whole, there, part, device, names);
              }
            }
            assertThat(host.steps()).isEqualTo(hasBadStep ? STEPS - 1 : STEPS);
          }
        });
  }

  /** Compares flat parameters, and the state of them, with others bit for bit. */
  void flatParameters() throws Exception {
    for (DType dtype : List.of(DType.FLOAT32, DType.BFLOAT16)) {
      ranks.run(
          2,
          (group, device) -> {
            List<Tensor> given = onDevice(device, parameters(dtype));
            List<Tensor> there = onDevice(device, parameters(dtype));
            AdamW update = new AdamW(0.01);
            OptimizerOptions more = OptimizerOptions.DEFAULT.withClipping(3);
            try (ShardedOptimizer plain =
                    new ShardedOptimizer(group, there, options(), update, more);
                ShardedOptimizer flat =
                    new ShardedOptimizer(
                        group, given, options(), update, more.withFlatParameters())) {
              assertThat(plain.parameters()).isEqualTo(there);
              for (int step = 1; step <= STEPS; step++) {
                backward(plain, device, step, group.rank(), false);
                plain.step();
                backward(flat, device, step, group.rank(), false);
                flat.step();
                requireSame(device, there, flat.parameters());
                requireSame(device, plain.state(), flat.state());
              }
              requireSame(device, onDevice(device, parameters(dtype)), given);
            }
          });
    }
  }

  private static void requireSame(CudaDevice device, List<Tensor> expected, List<Tensor> found) {
    assertThat(found).hasSameSizeAs(expected);
    for (int i = 0; i < expected.size(); i++) {
      assertThat(found.get(i).shape()).isEqualTo(expected.get(i).shape());
      assertThat(flat(onHost(device, found.get(i))))
          .as("tensor %s", i)
          .isEqualTo(flat(onHost(device, expected.get(i))));
    }
  }

  private static double[] flat(Tensor tensor) {
    return tensor.view(tensor.numel()).toDoubleArray();
  }

  private static void requireClose(Tensor expected, Tensor found, String where) {
    double[] right = flat(expected);
    double[] values = flat(found);
    double share =
        switch (found.dtype()) {
          case BFLOAT16 -> 0x1p-8;
          case FLOAT16 -> 0x1p-11;
          default -> 0;
        };
    for (int k = 0; k < right.length; k++) {
      assertThat(values[k])
          .as("element %s of parameter %s", k, where)
          .isCloseTo(right[k], within(CLOSE + Math.abs(right[k]) * share));
    }
  }

  private static void requireMaster(
      List<Tensor> whole,
      List<Tensor> there,
      StatePart part,
      CudaDevice device,
      List<String> names) {
    String[] kind = part.name().split("/", -1);
    if (kind[0].equals("master")) {
      int parameter = names.indexOf(kind[1]);
      double[] right = flat(whole.get(parameter));
      double[] rounded = flat(onHost(device, there.get(parameter)));
      Tensor master = onHost(device, part.elements());
      int first = (int) part.first();
      for (int k = 0; k < master.numel(); k++) {
        assertThat(master.getDouble(k)).isCloseTo(right[first + k], within(CLOSE));
        Tensor one = Tensor.allocate(there.get(parameter).dtype(), 1);
        one.setDouble(0, master.getDouble(k));
        assertThat(rounded[first + k]).isEqualTo(one.getDouble(0));
      }
    }
  }

  /** Compares with the formulas in PyTorch's documentation, in float64. */
  void formulas() throws Exception {
    ranks.run(
        1,
        (group, device) -> {
          for (boolean isSgd : new boolean[] {false, true}) {
            List<Tensor> there = onDevice(device, parameters(DType.FLOAT32));
            double[] p = flat(random(DType.FLOAT32, 1, SHAPES[1]));
            double[] first = new double[p.length];
            double[] second = new double[p.length];
            ShardUpdate update =
                isSgd
                    ? new Sgd(0.125, 0.5, 0.25, 0.0625, false)
                    : new AdamW(0.015625, 0.875, 0.96875, 1e-8, 0.125);
            try (ShardedOptimizer optimizer =
                new ShardedOptimizer(group, there, options(), update)) {
              for (int step = 1; step <= STEPS; step++) {
                double[] g = flat(gradient(DType.FLOAT32, 1, step, 0));
                backward(optimizer, device, step, 0, false);
                optimizer.step();
                for (int k = 0; k < p.length; k++) {
                  p[k] =
                      isSgd
                          ? sgd(step, p[k], g[k], first, k)
                          : adamW(step, p[k], g[k], first, second, k);
                }
                double[] found = flat(onHost(device, there.get(1)));
                for (int k = 0; k < p.length; k++) {
                  assertThat(found[k]).as("step %s", step).isCloseTo(p[k], within(CLOSE));
                }
              }
            }
          }
        });
  }

  private static double adamW(int step, double p, double g, double[] m, double[] v, int k) {
    double decayed = p - 0.015625 * 0.125 * p;
    m[k] = 0.875 * m[k] + 0.125 * g;
    v[k] = 0.96875 * v[k] + 0.03125 * g * g;
    double mean = m[k] / (1 - Math.pow(0.875, step));
    double square = v[k] / (1 - Math.pow(0.96875, step));
    return decayed - 0.015625 * mean / (Math.sqrt(square) + 1e-8);
  }

  private static double sgd(int step, double p, double gradient, double[] velocity, int k) {
    double g = gradient + 0.0625 * p;
    velocity[k] = step == 1 ? g : 0.5 * velocity[k] + 0.75 * g;
    return p - 0.125 * velocity[k];
  }

  /**
   * Compares replays of a captured step with eager steps; the rate changes in between.
   *
   * @param isFlat whether the captured step has flat parameters
   */
  void replays(boolean isFlat) throws Exception {
    OptimizerOptions more = OptimizerOptions.DEFAULT.withClipping(3).withLossScale(8, 2, 0.5, 2);
    OptimizerOptions ofSecond = isFlat ? more.withFlatParameters() : more;
    ranks.run(
        2,
        (group, device) -> {
          try (CudaSession session = new CudaSession(device)) {
            List<Tensor> eager = onDevice(device, parameters(DType.FLOAT32));
            List<Tensor> replayed = onDevice(device, parameters(DType.FLOAT32));
            List<Tensor> inputs = onDevice(device, parameters(DType.FLOAT32));
            AdamW one = new AdamW(0.01);
            AdamW other = new AdamW(0.01);
            try (ShardedOptimizer first =
                new ShardedOptimizer(group, eager, options(), one, more)) {
              ShardedOptimizer second =
                  new ShardedOptimizer(group, replayed, options(), other, ofSecond);
              for (int step = 1; step <= 2; step++) {
                write(inputs, device, step, group.rank());
                step(first, inputs);
                step(second, inputs);
              }
              try (Recording graph = session.record(() -> step(second, inputs))) {
                for (int step = 3; step <= STEPS; step++) {
                  if (step == 5) {
                    one.setLearningRate(0.002);
                    other.setLearningRate(0.002);
                    second.refresh();
                  }
                  write(inputs, device, step, group.rank());
                  step(first, inputs);
                  graph.replay();
                  for (int i = 0; i < SHAPES.length; i++) {
                    assertThat(flat(onHost(device, second.parameters().get(i))))
                        .as("parameter %s after step %s", i, step)
                        .isEqualTo(flat(onHost(device, eager.get(i))));
                  }
                }
                assertThat(second.steps()).isEqualTo(STEPS);
                group.store().barrier("replayed", 2, Until.LONG);
              }
              second.close();
            }
          }
        });
  }

  private static void write(List<Tensor> inputs, CudaDevice device, int step, int rank) {
    for (int i = 0; i < SHAPES.length; i++) {
      device.tensors().copyFromHost(inputs.get(i), gradient(DType.FLOAT32, i, step, rank));
    }
  }

  /** Takes a step whose gradients are the inputs. */
  void step(ShardedOptimizer optimizer, List<Tensor> inputs) {
    GradientReducer reducer = optimizer.reducer();
    for (int i = SHAPES.length - 1; i >= 0; i--) {
      allocator.copy(reducer.gradient(i), inputs.get(i));
      reducer.ready(i);
    }
    optimizer.step();
  }
}
