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
    double backward = compute * BACKWARD;
    double whole = allReduce.applyAsDouble(bucket);
    double free = 0;
    for (long done = 0; done < gradients; ) {
      long bytes = Math.min(bucket, gradients - done);
      done += bytes;
      double full = compute - backward * (gradients - done) / gradients;
      double time = bytes == bucket ? whole : allReduce.applyAsDouble(bytes);
      free = Math.max(free, full) + time;
    }
    return Math.max(free, compute);
  }
}
