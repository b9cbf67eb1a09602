package dev.tutti.gradients.hook;

import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** The options of {@link PowerSgd}. Immutable; each {@code with} method returns a changed copy. */
public final class PowerSgdOptions {
  /** Gives the factor that the first approximation of a matrix begins with. */
  @FunctionalInterface
  public interface FirstFactor {
    /**
     * Returns an element; all ranks must return the same.
     *
     * @param parameter index of the parameter
     * @param row a column of the gradient's matrix, from 0
     * @param column from 0 to the rank of the approximation
     */
    double at(int parameter, int row, int column);
  }

  /** c10d's defaults: rank 1, from step 1001 on, at least half the bytes saved. */
  public static final PowerSgdOptions DEFAULT = new PowerSgdOptions(new Fields());

  private final Fields fields;

  private PowerSgdOptions(Fields fields) {
    this.fields = fields;
  }

  private PowerSgdOptions with(Consumer<Fields> change) {
    Fields copy = fields.copy();
    change.accept(copy);
    return new PowerSgdOptions(copy);
  }

  /**
   * Changes the rank of the matrices that gradients are approximated by: 1 by default, more for
   * more bytes and a better approximation.
   *
   * @param rank from 1
   */
  public PowerSgdOptions withRank(int rank) {
    if (rank < 1) {
      throw new IllegalArgumentException("rank must be at least 1, not " + rank);
    }
    return with(copy -> copy.rank = rank);
  }

  /**
   * Changes how many steps are reduced as they are before: 1000 by default, as approximations hurt
   * most at the start.
   *
   * @param steps from 0
   */
  public PowerSgdOptions withPlainSteps(long steps) {
    if (steps < 0) {
      throw new IllegalArgumentException("steps must not be negative: " + steps);
    }
    return with(copy -> copy.plainSteps = steps);
  }

  /**
   * Changes how many times fewer elements a matrix must have when it is approximated; others are
   * reduced as they are. 2 by default.
   *
   * @param rate positive
   */
  public PowerSgdOptions withLeastRate(double rate) {
    if (!(rate > 0)) {
      throw new IllegalArgumentException("rate must be positive, not " + rate);
    }
    return with(copy -> copy.leastRate = rate);
  }

  /** Forgets what an approximation leaves out, instead of adding it to the next step's gradient. */
  public PowerSgdOptions withoutErrorFeedback() {
    return with(copy -> copy.errorFeedback = false);
  }

  /** Begins each approximation at random, instead of at the factor of the step before. */
  public PowerSgdOptions withoutWarmStart() {
    return with(copy -> copy.warmStart = false);
  }

  /**
   * Changes what is added to the norm of a column before it is divided by it: 0 by default.
   *
   * @param epsilon not negative
   */
  public PowerSgdOptions withEpsilon(double epsilon) {
    if (!(epsilon >= 0)) {
      throw new IllegalArgumentException("epsilon must not be negative: " + epsilon);
    }
    return with(copy -> copy.epsilon = epsilon);
  }

  /**
   * Changes the seed of random factors, which all ranks must have alike.
   *
   * @param seed any
   */
  public PowerSgdOptions withSeed(long seed) {
    return with(copy -> copy.seed = seed);
  }

  /**
   * Begins with a given factor instead of a random one, as to repeat the numbers of another
   * implementation.
   *
   * @param firstFactor the same on all ranks
   */
  public PowerSgdOptions withFirstFactor(FirstFactor firstFactor) {
    return with(copy -> copy.firstFactor = Objects.requireNonNull(firstFactor, "firstFactor"));
  }

  int rank() {
    return fields.rank;
  }

  long plainSteps() {
    return fields.plainSteps;
  }

  boolean errorFeedback() {
    return fields.errorFeedback;
  }

  boolean warmStart() {
    return fields.warmStart;
  }

  double epsilon() {
    return fields.epsilon;
  }

  /** Tells whether a matrix is approximated. */
  boolean compresses(long rows, long columns) {
    return (rows + columns) * (double) fields.rank * fields.leastRate < (double) rows * columns;
  }

  /** Returns an element of the factor that begins an approximation: the first one, at step -1. */
  double factor(long step, int parameter, int row, int column) {
    @Nullable FirstFactor given = fields.firstFactor;
    return given != null && step < 0
        ? given.at(parameter, row, column)
        : RandomFactor.normal(fields.seed, step, parameter, row, column);
  }

  private static final class RandomFactor {
    /** Returns a number of the normal distribution that follows from its place alone. */
    static double normal(long seed, long step, int parameter, int row, int column) {
      long place = mix(mix(mix(seed + step) + parameter) + row) + column;
      double radius = Math.sqrt(-2 * Math.log(1 - unit(mix(place))));
      return radius * Math.cos(2 * Math.PI * unit(mix(place ^ 0x5bf0_3635_dcf8_2f71L)));
    }

    private static double unit(long bits) {
      return (bits >>> 11) * 0x1p-53;
    }

    /** The finaliser of SplitMix64. */
    private static long mix(long value) {
      long z = value + 0x9e37_79b9_7f4a_7c15L;
      z = (z ^ (z >>> 30)) * 0xbf58_476d_1ce4_e5b9L;
      z = (z ^ (z >>> 27)) * 0x94d0_49bb_1331_11ebL;
      return z ^ (z >>> 31);
    }
  }

  private static final class Fields implements Cloneable {
    int rank = 1;
    long plainSteps = 1000;
    double leastRate = 2;
    boolean errorFeedback = true;
    boolean warmStart = true;
    double epsilon;
    long seed;
    @Nullable FirstFactor firstFactor;

    Fields copy() {
      try {
        return (Fields) clone();
      } catch (CloneNotSupportedException e) {
        throw new AssertionError(e);
      }
    }
  }
}
