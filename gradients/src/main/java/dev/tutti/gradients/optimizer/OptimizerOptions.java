package dev.tutti.gradients.optimizer;

/** Options of a {@link ShardedOptimizer}, immutable; methods return a changed copy. */
public final class OptimizerOptions {
  /** Neither clips gradients nor scales the loss. */
  public static final OptimizerOptions DEFAULT = new OptimizerOptions(0, 1, 1, 1, 0, false);

  private final double maxNorm;
  private final double scale;
  private final double growth;
  private final double backoff;
  private final int interval;
  private final boolean isFlat;

  private OptimizerOptions(
      double maxNorm, double scale, double growth, double backoff, int interval, boolean isFlat) {
    this.maxNorm = maxNorm;
    this.scale = scale;
    this.growth = growth;
    this.backoff = backoff;
    this.interval = interval;
    this.isFlat = isFlat;
  }

  /**
   * Scales down all gradients, as PyTorch's {@code clip_grad_norm_}, if the norm of all of them
   * together is larger. A step with an infinite or NaN gradient then changes nothing.
   *
   * @param newMaxNorm the largest norm, positive
   */
  public OptimizerOptions withClipping(double newMaxNorm) {
    if (!(newMaxNorm > 0 && newMaxNorm < Double.POSITIVE_INFINITY)) {
      throw new IllegalArgumentException(
          "the largest norm must be positive and finite, not %s; omit withClipping to clip nothing"
              .formatted(newMaxNorm));
    }
    return new OptimizerOptions(newMaxNorm, scale, growth, backoff, interval, isFlat);
  }

  /**
   * Divides gradients by a loss scale that adapts, with PyTorch's defaults: 65536 at first, half of
   * it after a step with an infinite or NaN gradient, twice as much after 2000 other steps.
   */
  public OptimizerOptions withLossScale() {
    return withLossScale(65_536, 2, 0.5, 2000);
  }

  /**
   * Divides gradients by a loss scale that adapts (PyTorch: {@code GradScaler}). The program
   * multiplies the loss by {@link ShardedOptimizer#lossScale}. A step with an infinite or NaN
   * gradient changes neither parameters nor state.
   *
   * @param first the scale at first, positive
   * @param newGrowth the factor by which it grows, at least 1, finite
   * @param newBackoff the factor by which it shrinks after such a step, more than 0 and at most 1
   * @param newInterval the number of other steps in a row after which it grows, at least 1
   */
  public OptimizerOptions withLossScale(
      double first, double newGrowth, double newBackoff, int newInterval) {
    require(
        first > 0 && first <= Float.MAX_VALUE, "be positive and at most 3.4e38 at first", first);
    require(
        newGrowth >= 1 && newGrowth <= Double.MAX_VALUE,
        "grow by a finite factor of at least 1",
        newGrowth);
    require(
        newBackoff > 0 && newBackoff <= 1, "shrink by a factor above 0 and up to 1", newBackoff);
    require(newInterval >= 1, "grow after at least 1 step", newInterval);
    return new OptimizerOptions(maxNorm, first, newGrowth, newBackoff, newInterval, isFlat);
  }

  /**
   * Keeps the parameters of each bucket one after another in memory of the optimizer, where steps
   * change and gather them without copies. The program uses {@link ShardedOptimizer#parameters}
   * instead of those that it gave.
   */
  public OptimizerOptions withFlatParameters() {
    return new OptimizerOptions(maxNorm, scale, growth, backoff, interval, true);
  }

  private static void require(boolean isMet, String what, Object given) {
    if (!isMet) {
      throw new IllegalArgumentException("a loss scale must %s, not %s".formatted(what, given));
    }
  }

  double maxNorm() {
    return maxNorm;
  }

  double scale() {
    return scale;
  }

  double growth() {
    return growth;
  }

  double backoff() {
    return backoff;
  }

  int interval() {
    return interval;
  }

  boolean isFlat() {
    return isFlat;
  }

  /** Returns whether a step depends on the squares of all gradients. */
  boolean checks() {
    return maxNorm > 0 || interval > 0;
  }

  @Override
  public String toString() {
    return "OptimizerOptions[maxNorm=%s, lossScale=%s, interval=%s, flatParameters=%s]"
        .formatted(maxNorm, scale, interval, isFlat);
  }
}
