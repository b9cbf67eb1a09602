package dev.tutti.runtime.view;

/**
 * A time span in which the JVM of a rank was paused.
 *
 * @param rank the rank among all ranks
 * @param startNanos when the pause began, by the rank's clock
 * @param endNanos when the pause ended
 * @param what the cause of the pause, in words
 */
public record Pause(int rank, long startNanos, long endNanos, String what) {
  /** Returns how much of a time span the pause covers. */
  long within(long fromNanos, long toNanos) {
    return Math.max(0, Math.min(endNanos, toNanos) - Math.max(startNanos, fromNanos));
  }

  public long nanos() {
    return endNanos - startNanos;
  }
}
