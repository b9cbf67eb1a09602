package dev.tutti.gradients.hook;

import dev.tutti.Tensor;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** The options of {@link PowerSgd}. Immutable; each {@code with} method returns a changed copy. */
public final class PowerSgdOptions {
  /** A function that gives the factor with which the first approximation of a matrix begins. */
  @FunctionalInterface
  public interface FirstFactor {
    /**
     * Returns an element of the factor; all ranks must return the same.
     *
     * @param parameter the index of the parameter
     * @param row the row of the factor, which is a column of the gradient's matrix, starting at 0
     * @param column the column of the factor, from 0 to less than the rank of the approximation
     */
    double at(int parameter, int row, int column);
  }

  /**
   * The defaults, as in c10d: rank 1, from step 1001 on, for matrices where it saves at least half
   * the bytes.
   */
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
   * Changes the rank of the approximation: 1 by default; a higher rank means more bytes and a
   * better approximation.
   *
   * @param rank the rank, at least 1
   */
  public PowerSgdOptions withRank(int rank) {
    if (rank < 1) {
      throw new IllegalArgumentException("rank must be at least 1, not " + rank);
    }
    return with(copy -> copy.rank = rank);
  }

  /**
   * Changes the number of steps that are reduced as they are before approximation begins: 1000 by
   * default, as approximations hurt most at the start. The first step is always reduced as it is if
   * approximations depend on earlier ones, by error feedback or a warm start, since the buckets
   * that follow it may be new.
   *
   * @param steps the number of steps, at least 0
   */
  public PowerSgdOptions withPlainSteps(long steps) {
    if (steps < 0) {
      throw new IllegalArgumentException("steps must not be negative: " + steps);
    }
    return with(copy -> copy.plainSteps = steps);
  }

  /**
   * Changes the factor by which approximation must reduce a matrix's elements; other matrices are
   * reduced as they are. The default is 2.
   *
   * @param rate the factor; must be positive
   */
  public PowerSgdOptions withLeastRate(double rate) {
    if (!(rate > 0)) {
      throw new IllegalArgumentException("rate must be positive, not " + rate);
    }
    return with(copy -> copy.leastRate = rate);
  }

  /**
   * Discards what an approximation leaves out, instead of adding it to the gradient of the next
   * step.
   */
  public PowerSgdOptions withoutErrorFeedback() {
    return with(copy -> copy.errorFeedback = false);
  }

  /**
   * Begins each approximation with random numbers, instead of with the factor of the previous step.
   */
  public PowerSgdOptions withoutWarmStart() {
    return with(copy -> copy.warmStart = false);
  }

  /**
   * Changes the number added to the norm of a column before the column is divided by it: 0 by
   * default.
   *
   * @param epsilon the number, not negative
   */
  public PowerSgdOptions withEpsilon(double epsilon) {
    if (!(epsilon >= 0)) {
      throw new IllegalArgumentException("epsilon must not be negative: " + epsilon);
    }
    return with(copy -> copy.epsilon = epsilon);
  }

  /**
   * Changes the seed of random factors, which must be the same on all ranks.
   *
   * @param seed any number
   */
  public PowerSgdOptions withSeed(long seed) {
    return with(copy -> copy.seed = seed);
  }

  /**
   * Begins with a given factor instead of a random one, for example to reproduce the numbers of
   * another implementation.
   *
   * @param firstFactor the factor, the same on all ranks
   */
  public PowerSgdOptions withFirstFactor(FirstFactor firstFactor) {
    return with(copy -> copy.firstFactor = Objects.requireNonNull(firstFactor, "firstFactor"));
  }

  int rank() {
    return fields.rank;
  }

  long plainSteps() {
    boolean dependent = fields.errorFeedback || fields.warmStart;
    return dependent ? Math.max(1, fields.plainSteps) : fields.plainSteps;
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

  /** Returns whether a gradient is approximated. */
  boolean compresses(Tensor gradient) {
    if (gradient.dim() < 2 || gradient.numel() == 0) {
      return false;
    }
    double rows = gradient.size(0);
    double columns = gradient.numel() / rows;
    return (rows + columns) * fields.rank * fields.leastRate < rows * columns;
  }

  /**
   * Returns an element of the factor with which an approximation begins; step -1 stands for the
   * first one.
   */
  double factor(long step, int parameter, int row, int column) {
    @Nullable FirstFactor given = fields.firstFactor;
    return given != null && step < 0
        ? given.at(parameter, row, column)
        : RandomFactor.normal(fields.seed, step, parameter, row, column);
  }

  private static final class RandomFactor {
    /** Returns a normally distributed number that depends only on its position. */
    static double normal(long seed, long step, int parameter, int row, int column) {
      long place = mix(mix(mix(seed + step) + parameter) + row) + column;
      double radius = Math.sqrt(-2 * Math.log(1 - unit(mix(place))));
      return radius * Math.cos(2 * Math.PI * unit(mix(place ^ 0x5bf0_3635_dcf8_2f71L)));
    }

    private static double unit(long bits) {
      return (bits >>> 11) * 0x1p-53;
    }

    /** The finalizer of SplitMix64. */
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
