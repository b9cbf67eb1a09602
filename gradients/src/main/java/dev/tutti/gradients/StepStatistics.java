package dev.tutti.gradients;

import java.time.Duration;

/**
 * The statistics of a step of a {@link GradientReducer}, or their mean over all of its steps (c10d:
 * {@code Logger}). Times are those of this rank.
 */
public final class StepStatistics {
  private final long steps;
  private final int buckets;
  private final long bytes;
  private final long stepNanos;
  private final long backwardNanos;
  private final long communicationNanos;
  private final long exposedNanos;

  /** A sum of steps. */
  static final class Sample {
    long steps;
    int buckets;
    long bytes;
    long step;
    long backward;
    long communication;
    long exposed;

    void add(Sample other) {
      steps = other.steps;
      buckets = other.buckets;
      bytes += other.bytes;
      step += other.step;
      backward += other.backward;
      communication += other.communication;
      exposed += other.exposed;
    }
  }

  StepStatistics(Sample sample, long count) {
    steps = sample.steps;
    buckets = sample.buckets;
    bytes = sample.bytes / count;
    stepNanos = sample.step / count;
    backwardNanos = sample.backward / count;
    communicationNanos = sample.communication / count;
    exposedNanos = sample.exposed / count;
  }

  /** Returns the number of steps reduced so far. */
  public long steps() {
    return steps;
  }

  /** Returns the number of buckets. */
  public int buckets() {
    return buckets;
  }

  /** Returns the number of bytes of the gradients that were reduced. */
  public long bytes() {
    return bytes;
  }

  /** Returns the time from the first gradient to the end of {@link GradientReducer#await}. */
  public Duration step() {
    return Duration.ofNanos(stepNanos);
  }

  /**
   * Returns the time from the first gradient to the last one, which is that of the backward pass.
   */
  public Duration backward() {
    return Duration.ofNanos(backwardNanos);
  }

  /** Returns the time spent reducing buckets, whether hidden behind the backward pass or not. */
  public Duration communication() {
    return Duration.ofNanos(communicationNanos);
  }

  /**
   * Returns the time spent in {@link GradientReducer#await}, which is communication that was not
   * hidden.
   */
  public Duration exposed() {
    return Duration.ofNanos(exposedNanos);
  }

  @Override
  public String toString() {
    return "StepStatistics[steps=%d, buckets=%d, bytes=%d, step=%s, backward=%s, communication=%s, exposed=%s]"
        .formatted(steps, buckets, bytes, step(), backward(), communication(), exposed());
  }
}
