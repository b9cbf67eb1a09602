package dev.tutti.cli.simulate;

import java.util.function.LongToDoubleFunction;

/**
 * A step of data-parallel training, whose gradients are reduced in buckets beside backward. A
 * bucket is reduced when it is full and the one before has been reduced.
 *
 * @param gradients the bytes of all gradients
 * @param bucket the bytes of a bucket; the last one may be smaller
 * @param compute the seconds of forward and backward of one step on one rank
 */
public record TrainingStep(long gradients, long bucket, double compute) {
  /** The share of backward in the time of a step; backward computes twice what forward does. */
  private static final double BACKWARD = 2.0 / 3;

  /** Creates a step. */
  public TrainingStep {
    if (gradients < 1 || bucket < 1 || !(compute >= 0)) {
      throw new IllegalArgumentException(
          "a step needs gradients and buckets of at least 1 byte, and a time of at least 0");
    }
  }

  /**
   * Returns the seconds of a step.
   *
   * @param allReduce the seconds in which a number of bytes is reduced
   */
  public double seconds(LongToDoubleFunction allReduce) {
    long whole = gradients / bucket;
    long rest = gradients % bucket;
    double free = 0;
    if (whole > 0) {
      double time = allReduce.applyAsDouble(bucket);
      // They are full at equal distances, so all but the first wait, or none does.
      free = Math.max(full(bucket) + whole * time, full(whole * bucket) + time);
    }
    if (rest > 0) {
      free = Math.max(free, compute) + allReduce.applyAsDouble(rest);
    }
    return Math.max(free, compute);
  }

  /** Returns the seconds after which so many bytes of gradients are there. */
  private double full(long bytes) {
    return compute - compute * BACKWARD * (gradients - bytes) / gradients;
  }
}
