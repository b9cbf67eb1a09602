package dev.tutti.runtime.view;

import java.util.Locale;

/**
 * A collective to which a rank came late because its JVM was paused.
 *
 * @param call the call of that rank
 * @param lagNanos how late the rank was
 * @param pausedNanos for how much of that time the JVM was paused
 * @param what the causes of the pauses
 */
public record HeldUp(RankOperation call, long lagNanos, long pausedNanos, String what) {
  String describe() {
    return String.format(
        Locale.ROOT,
        "group %s: rank %d was %.1f ms late for %s; its JVM was paused for %.1f ms of that: %s",
        call.group(),
        call.rank(),
        lagNanos / 1e6,
        call.describe(),
        pausedNanos / 1e6,
        what);
  }
}
