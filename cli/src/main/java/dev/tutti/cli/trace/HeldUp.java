package dev.tutti.cli.trace;

import java.util.Locale;

/**
 * A collective to which a rank came late since its JVM had stood still.
 *
 * @param entry of that rank
 * @param lagNanos by how much it was late
 * @param pausedNanos for how much of that it stood still
 * @param what its pauses were
 */
record HeldUp(TraceEntry entry, long lagNanos, long pausedNanos, String what) {
  String describe() {
    return String.format(
        Locale.ROOT,
        "group %s: rank %d came %.1f ms late to %s; its JVM stood still for %.1f ms of them: %s",
        entry.group(),
        entry.rank(),
        lagNanos / 1e6,
        entry.describe(),
        pausedNanos / 1e6,
        what);
  }
}
