package dev.tutti.gradients;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.ProcessGroup;
import java.util.Arrays;
import java.util.Random;
import java.util.function.BiFunction;

/**
 * A random program that trains data-parallel with an engine, drawn from a seed: which parameters
 * are frozen or unused in a pass, how many backwards accumulate, when gradients are cleared, and
 * for some programs what goes wrong in which step. The gradient of each use of a parameter is a
 * number of seed, rank, step, pass and parameter, so every rank can compute the means by c10d's
 * rules.
 *
 * @param <F> what may go wrong; the first constant means that nothing does
 */
public abstract class TrainingProgram<F extends Enum<F>> implements AutoCloseable {
  /** The number of steps that a program takes. */
  protected static final int STEPS = 5;

  /** The options of all programs, without unused parameters. */
  protected static final ReducerOptions OPTIONS =
      ReducerOptions.DEFAULT.withBucketBytes(64, 1024).withDigest(1);

  protected final ProcessGroup group;
  protected final Random random;
  protected final int count;
  protected final boolean unused;
  protected final boolean[] frozen;
  protected final int faultParameter;
  protected F fault;
  private final F none;
  private final long seed;
  private final int faultStep;
  private final int faultRank;

  /** For each rank and parameter, its gradient, or NaN if it is undefined. */
  private final double[][] gradients;

  private final boolean[][] used;

  /**
   * Draws a program.
   *
   * @param faults what may go wrong
   * @param unfrozen the fault of a parameter that is frozen at the start
   * @param cleared a gradient before its first use, NaN if it is undefined
   */
  protected TrainingProgram(long seed, ProcessGroup group, F[] faults, F unfrozen, double cleared) {
    this.seed = seed;
    this.group = group;
    random = at(-1);
    count = 2 + random.nextInt(4);
    unused = random.nextBoolean();
    none = faults[0];
    fault = random.nextInt(3) == 0 ? faults[random.nextInt(faults.length)] : none;
    faultStep = 1 + random.nextInt(STEPS - 1);
    faultRank = random.nextInt(group.size());
    faultParameter = fault == unfrozen ? count - 1 : random.nextInt(2);
    frozen = new boolean[count];
    for (int i = 0; i < count; i++) {
      frozen[i] = (i > 1 && random.nextInt(3) == 0) || (fault == unfrozen && i == count - 1);
    }
    gradients = new double[group.size()][count];
    used = new boolean[group.size()][count];
    for (double[] own : gradients) {
      Arrays.fill(own, cleared);
    }
  }

  /**
   * Runs programs one after another, each in a group of its own.
   *
   * @param programs how many, unless {@code tutti.modulePrograms} says otherwise
   */
  public static void runAll(
      ProcessGroup group, int programs, BiFunction<Long, ProcessGroup, TrainingProgram<?>> draw) {
    long first = Long.getLong("tutti.fuzzSeed", 1);
    long end = first + Integer.getInteger("tutti.modulePrograms", programs);
    for (long seed = first; seed < end; seed++) {
      try (ProcessGroup own = group.split(0, group.rank()).orElseThrow();
          TrainingProgram<?> program = draw.apply(seed, own)) {
        program.run();
      }
      group.barrier();
    }
  }

  private void run() {
    for (int step = 0; step < STEPS; step++) {
      if (fault != none && step == faultStep) {
        fail(step);
        return;
      }
      step(step);
    }
  }

  private void fail(int step) {
    String expected = fail(group.rank() == faultRank, faultRank);
    if (!expected.isEmpty()) {
      assertThat(catchThrowable(this::reduceGradients))
          .as("failure in step %d of %s", step, this)
          .isInstanceOf(GradientException.class)
          .hasMessageContaining(expected);
    }
  }

  /** Takes a step in which nothing goes wrong. */
  protected abstract void step(int step);

  /** Reduces the gradients as the engine's adapter does. */
  protected abstract void reduceGradients();

  /**
   * Does a step's work before the reduction, in which something goes wrong on one rank.
   *
   * @param here whether this rank is the one
   * @param faultRank that rank
   * @return a part of the message with which the reduction fails; empty if this rank left
   */
  protected abstract String fail(boolean here, int faultRank);

  /**
   * Draws what a use of a parameter adds to each element of its gradient.
   *
   * @return NaN if the pass does not use the parameter
   */
  protected abstract double factor(Random drawn, int pass, int parameter);

  /** Returns the elements of a parameter's gradient now, or none if it is undefined. */
  protected abstract double[] gradient(int parameter);

  /** Returns a generator of a place in the program. */
  protected final Random at(long... place) {
    long mixed = seed;
    for (long each : place) {
      mixed = (mixed + each + 2) * 0x9E37_79B9_7F4A_7C15L;
      mixed ^= mixed >>> 29;
    }
    return new Random(mixed);
  }

  /** Counts a backward of all ranks, and returns this rank's factors; NaN if it leaves one out. */
  protected final double[] pass(int step, int pass) {
    double[] factors = new double[count];
    for (int rank = 0; rank < group.size(); rank++) {
      for (int i = 0; i < count; i++) {
        double factor = factor(at(1, rank, step, pass, i), pass, i);
        if (rank == group.rank()) {
          factors[i] = factor;
        }
        if (!frozen[i] && !Double.isNaN(factor)) {
          double before = gradients[rank][i];
          gradients[rank][i] = (Double.isNaN(before) ? 0 : before) + factor;
          used[rank][i] = true;
        }
      }
    }
    return factors;
  }

  /** Returns factors of a backward that uses all parameters, more than passes can take away. */
  protected final double[] factors() {
    double[] factors = new double[count];
    Arrays.fill(factors, 6000);
    return factors;
  }

  /** Counts that a gradient is cleared on all ranks, to 0, or to NaN, which makes it undefined. */
  protected final void clear(int parameter, double value) {
    for (double[] own : gradients) {
      own[parameter] = Double.isNaN(own[parameter]) ? Double.NaN : value;
    }
  }

  /**
   * Reduces the gradients, which then are by c10d's rules: the mean counts what each rank has, and
   * zeros where it has nothing; what no rank used stays.
   */
  protected final void reduce(int step) {
    reduceGradients();
    for (int i = 0; i < count; i++) {
      boolean any = false;
      double sum = 0;
      for (int rank = 0; rank < group.size(); rank++) {
        double own = gradients[rank][i];
        sum += Double.isNaN(own) ? 0 : own;
        any |= used[rank][i];
        used[rank][i] = false;
      }
      for (int rank = 0; any && rank < group.size(); rank++) {
        gradients[rank][i] = sum / group.size();
      }
      if (!frozen[i]) {
        require(step, i);
      }
    }
  }

  private void require(int step, int parameter) {
    double expected = gradients[group.rank()][parameter];
    double[] actual = gradient(parameter);
    assertThat(actual.length == 0)
        .as("p%d undefined in step %d of %s", parameter, step, this)
        .isEqualTo(Double.isNaN(expected));
    for (double value : actual) {
      if (!(Math.abs(value - expected) <= 0.002 * Math.max(1, Math.abs(expected)))) {
        throw new AssertionError(
            "the gradient of p%d in step %d is %s, not %s: %s"
                .formatted(parameter, step, value, expected, this));
      }
    }
  }

  /** Frees what training took. */
  @Override
  public abstract void close();

  @Override
  public String toString() {
    return ("seed %d, %d ranks, %d parameters, frozen at the start or now %s, unused %s,"
            + " %s of p%d in step %d on rank %d")
        .formatted(
            seed,
            group.size(),
            count,
            Arrays.toString(frozen),
            unused,
            fault,
            faultParameter,
            faultStep,
            faultRank);
  }
}
