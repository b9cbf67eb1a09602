package dev.tutti.cli.trace;

/**
 * A time in which the JVM of a rank stood still.
 *
 * @param rank among all
 * @param startNanos when it began, by the rank's clock
 * @param endNanos when it ended
 * @param what it was, in words
 */
record Pause(int rank, long startNanos, long endNanos, String what) {
  /** Returns for how much of a time it stood still. */
  long within(long fromNanos, long toNanos) {
    return Math.max(0, Math.min(endNanos, toNanos) - Math.max(startNanos, fromNanos));
  }

  long nanos() {
    return endNanos - startNanos;
  }
}
