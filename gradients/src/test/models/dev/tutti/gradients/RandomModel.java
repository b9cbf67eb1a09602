package dev.tutti.gradients;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Registration;
import dev.tutti.Tensor;
import dev.tutti.gradients.ReducerOptions.Divisor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;

/**
 * A model and its training, generated from a seed: the types and sizes of the parameters, the sizes
 * of the buckets, and views or copies. The seed also determines, for each step, which parameters
 * are used, how many passes accumulate, in which order and on how many threads gradients arrive,
 * and how many steps each rank runs. What a rank adds to an element is a function of seed, step,
 * pass, rank and index, so every rank can compute all results in float64.
 */
public final class RandomModel {
  private static final DType[] TYPES = {
    DType.FLOAT32, DType.FLOAT32, DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16
  };
  private static final int STEPS = 4;

  /** The memory of a rank's parameters and gradients. */
  public interface Memory {
    /** Host memory. */
    Memory HOST = new Memory() {};

    /** Allocates a tensor of zeros. */
    default Tensor allocate(DType type, long... shape) {
      return Tensor.allocate(type, shape);
    }

    /** Returns the elements in row-major order. */
    default double[] read(Tensor tensor) {
      return tensor.toDoubleArray();
    }

    /** Sets all elements, in row-major order. */
    default void write(Tensor tensor, double[] values) {
      for (int i = 0; i < values.length; i++) {
        tensor.setDouble(i, values[i]);
      }
    }

    /** Runs work of another thread of the rank. */
    default void run(Runnable work) {
      work.run();
    }

    /** Returns the options of the rank's reducer. */
    default ReducerOptions options(ReducerOptions options) {
      return options;
    }
  }

  private final long seed;
  private final int ranks;
  private final List<DType> types = new ArrayList<>();
  private final List<long[]> shapes = new ArrayList<>();
  private final boolean copies;
  private final boolean unused;
  private final Divisor divisor;
  private final boolean uneven;
  private final int passes;
  private final int threads;
  private final ReducerOptions base;
  private final boolean ownThread;

  /**
   * Generates the model of a seed.
   *
   * @param largest the largest number of elements of most parameters
   */
  public RandomModel(long seed, int largest) {
    // Not drawn: the first numbers of successive seeds are nearly equal.
    this(seed, 1 + (int) Math.floorMod(seed, 4L), largest);
  }

  RandomModel(long seed, int ranks, int largest) {
    this.seed = seed;
    this.ranks = ranks;
    Random random = new Random(seed);
    int count = 1 + random.nextInt(24);
    for (int i = 0; i < count; i++) {
      types.add(TYPES[random.nextInt(TYPES.length)]);
      long size = (long) Math.exp(random.nextDouble() * Math.log(largest));
      shapes.add(random.nextInt(8) == 0 ? new long[] {0} : shape(size, random));
    }
    copies = random.nextInt(3) == 0;
    unused = random.nextInt(3) == 0;
    uneven = random.nextInt(3) == 0;
    divisor = random.nextBoolean() ? Divisor.GROUP_SIZE : Divisor.ACTIVE_RANKS;
    passes = random.nextInt(3) == 0 ? 3 : 1;
    threads = 1 + random.nextInt(3);
    ReducerOptions options =
        ReducerOptions.DEFAULT.withBucketBytes(
            1 + random.nextInt(4 * largest), 1 + random.nextInt(8 * largest));
    options = unused ? options.withUnusedParameters() : options;
    options = uneven ? options.withUnevenInputs(divisor) : options;
    base = random.nextInt(4) == 0 ? options.withoutRebuild() : options;
    ownThread = random.nextInt(4) > 0;
  }

  private static long[] shape(long size, Random random) {
    long rows = 1L + random.nextInt(4);
    return random.nextBoolean() ? new long[] {size} : new long[] {rows, size / rows + 1};
  }

  /** Returns the number of ranks, 1 to 4. */
  public int ranks() {
    return ranks;
  }

  @Override
  public String toString() {
    return ("seed %d: %d ranks, %d parameters of %s, copies %s, unused %s, uneven %s by %s,"
            + " %d passes, %d threads, own thread %s, %s")
        .formatted(
            seed,
            ranks,
            types.size(),
            types,
            copies,
            unused,
            uneven,
            divisor,
            passes,
            threads,
            ownThread,
            base);
  }

  private int count() {
    return types.size();
  }

  private Random at(long... place) {
    long mixed = seed;
    for (long each : place) {
      mixed = mixed * 0x9E37_79B9_7F4A_7C15L + each + 1;
      mixed ^= mixed >>> 29;
    }
    return new Random(mixed);
  }

  private int stepsOf(int rank) {
    return uneven ? at(-1, rank).nextInt(STEPS + 1) : STEPS;
  }

  private boolean isUsed(int step, int rank, int parameter) {
    return !unused || at(-2, step, rank, parameter).nextInt(3) > 0;
  }

  /** Returns what a rank adds in a pass, exactly representable in the parameter's type. */
  private double[] added(int step, int pass, int rank, int parameter, int numel) {
    Random random = at(step, pass, rank, parameter);
    Tensor rounded = Tensor.allocate(types.get(parameter), 1);
    double[] values = new double[numel];
    for (int i = 0; i < numel; i++) {
      rounded.setDouble(0, random.nextGaussian());
      values[i] = rounded.getDouble(0);
    }
    return values;
  }

  /** Trains on one rank, in host memory, and compares every gradient of every step. */
  public void run(ProcessGroup group) throws InterruptedException {
    run(group, Memory.HOST);
  }

  /** Trains on one rank and compares every gradient of every step. */
  public void run(ProcessGroup group, Memory memory) throws InterruptedException {
    List<Tensor> parameters = new ArrayList<>();
    List<Tensor> own = new ArrayList<>();
    for (int i = 0; i < count(); i++) {
      parameters.add(memory.allocate(types.get(i), shapes.get(i)));
      own.add(strided(memory, types.get(i), shapes.get(i), i));
    }
    ReducerOptions options = memory.options(copies ? base.withGradients(own) : base);
    boolean isOnHost = parameters.getFirst().device().isCpu();
    try (GradientReducer reducer =
        new GradientReducer(group, parameters, options, ownThread && isOnHost)) {
      for (int step = 0; step < stepsOf(group.rank()); step++) {
        for (int i = 0; i < count(); i++) {
          Tensor gradient = gradient(reducer, own, i);
          memory.write(gradient, new double[(int) gradient.numel()]);
        }
        for (int pass = 0; pass < passes; pass++) {
          if (pass < passes - 1) {
            try (Registration _ = reducer.noSync()) {
              backward(reducer, memory, own, group.rank(), step, pass);
            }
          } else {
            backward(reducer, memory, own, group.rank(), step, pass);
          }
        }
        for (int i = 0; i < count(); i++) {
          compare(memory.read(gradient(reducer, own, i)), reducer.isUsed(i), step, i);
        }
      }
      if (uneven) {
        reducer.join();
      }
    }
  }

  private static Tensor strided(Memory memory, DType type, long[] shape, int index) {
    if (shape.length == 2 && index % 2 == 0) {
      return memory.allocate(type, shape[1], shape[0]).transpose(0, 1);
    }
    return memory.allocate(type, shape);
  }

  private Tensor gradient(GradientReducer reducer, List<Tensor> own, int parameter) {
    return copies ? own.get(parameter) : reducer.gradient(parameter);
  }

  private void backward(
      GradientReducer reducer, Memory memory, List<Tensor> own, int rank, int step, int pass)
      throws InterruptedException {
    List<Integer> order = new ArrayList<>();
    for (int i = 0; i < count(); i++) {
      if (isUsed(step, rank, i)) {
        order.add(i);
      }
    }
    Collections.shuffle(order, at(-3, step, rank, pass));
    List<Thread> running = new ArrayList<>();
    for (int t = 0; t < threads; t++) {
      int first = t;
      running.add(
          Thread.startVirtualThread(
              () ->
                  memory.run(
                      () -> {
                        for (int k = first; k < order.size(); k += threads) {
                          int parameter = order.get(k);
                          Tensor gradient = gradient(reducer, own, parameter);
                          double[] sums = memory.read(gradient);
                          double[] added = added(step, pass, rank, parameter, sums.length);
                          Arrays.setAll(sums, i -> sums[i] + added[i]);
                          memory.write(gradient, sums);
                          reducer.ready(parameter);
                        }
                      })));
    }
    for (Thread thread : running) {
      thread.join();
    }
    reducer.await();
  }

  private void compare(double[] found, boolean isToldUsed, int step, int parameter) {
    int numel = found.length;
    double[] sum = new double[numel];
    double[] magnitude = new double[numel];
    boolean used = false;
    int active = 0;
    for (int rank = 0; rank < ranks; rank++) {
      boolean takesPart = step < stepsOf(rank);
      active += takesPart ? 1 : 0;
      if (!takesPart || !isUsed(step, rank, parameter)) {
        continue;
      }
      used = true;
      for (int pass = 0; pass < passes; pass++) {
        double[] added = added(step, pass, rank, parameter, numel);
        for (int i = 0; i < numel; i++) {
          sum[i] += added[i];
          magnitude[i] += Math.abs(added[i]);
        }
      }
    }
    double divided = uneven && divisor == Divisor.ACTIVE_RANKS ? active : ranks;
    assertThat(isToldUsed)
        .as("parameter %d used in step %d of %s", parameter, step, this)
        .isEqualTo(used || !unused);
    double epsilon = epsilon(types.get(parameter)) * (ranks + passes);
    // Below this value, elements of a type are no more precise than at it.
    double smallest = types.get(parameter) == DType.FLOAT16 ? 0x1p-14 : 1e-30;
    for (int i = 0; i < numel; i++) {
      double expected = sum[i] / divided;
      if (!(Math.abs(found[i] - expected) <= epsilon * (magnitude[i] + smallest))) {
        throw new AssertionError(
            "element %d of parameter %d in step %d is %s, not %s; %s"
                .formatted(i, parameter, step, found[i], expected, this));
      }
    }
  }

  private static double epsilon(DType type) {
    return switch (type) {
      case FLOAT64 -> 0x1p-52;
      case FLOAT32 -> 0x1p-23;
      case FLOAT16 -> 0x1p-10;
      default -> 0x1p-7;
    };
  }
}
