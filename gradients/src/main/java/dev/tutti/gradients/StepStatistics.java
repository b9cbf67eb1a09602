package dev.tutti.gradients;

import dev.tutti.spi.Printable;
import java.time.Duration;

/**
 * The statistics of a step of a {@link GradientReducer}, or their mean over all of its steps (c10d:
 * {@code Logger}). Times are those of this rank.
 */
public final class StepStatistics {
  private final Sample mean = new Sample();

  /** The numbers of a step, or their sums over several; times are in nanoseconds. */
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
    mean.steps = sample.steps;
    mean.buckets = sample.buckets;
    mean.bytes = sample.bytes / count;
    mean.step = sample.step / count;
    mean.backward = sample.backward / count;
    mean.communication = sample.communication / count;
    mean.exposed = sample.exposed / count;
  }

  /** Returns the number of steps reduced so far. */
  public long steps() {
    return mean.steps;
  }

  /** Returns the number of buckets. */
  public int buckets() {
    return mean.buckets;
  }

  /** Returns the number of bytes of the gradients that were reduced. */
  public long bytes() {
    return mean.bytes;
  }

  /** Returns the time from the first gradient to the end of {@link GradientReducer#await}. */
  public Duration step() {
    return Duration.ofNanos(mean.step);
  }

  /**
   * Returns the time from the first gradient to the last one, which is that of the backward pass.
   */
  public Duration backward() {
    return Duration.ofNanos(mean.backward);
  }

  /** Returns the time spent reducing buckets, whether hidden behind the backward pass or not. */
  public Duration communication() {
    return Duration.ofNanos(mean.communication);
  }

  /**
   * Returns the time spent in {@link GradientReducer#await}, which is communication that was not
   * hidden.
   */
  public Duration exposed() {
    return Duration.ofNanos(mean.exposed);
  }

  @Override
  public String toString() {
    return "StepStatistics[steps=%d, buckets=%d, bytes=%d, step=%s, backward=%s, communication=%s, exposed=%s]"
        .formatted(
            steps(),
            buckets(),
            bytes(),
            Printable.time(step()),
            Printable.time(backward()),
            Printable.time(communication()),
            Printable.time(exposed()));
  }
}
