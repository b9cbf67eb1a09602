package dev.tutti.fake.simulation;

import java.util.ArrayDeque;
import java.util.Deque;

/** The steps of a run: a hash of all of them, and the last ones as text. */
final class Trace {
  private static final int KEPT = 200;
  private static final long PRIME = 0x100000001b3L;

  private final Deque<Step> last = new ArrayDeque<>();
  private long hash = 0xcbf29ce484222325L;
  private long count;

  private record Step(long nanos, String text) {}

  void add(long nanos, SimulatedThread thread) {
    add(nanos, thread.number, thread.name());
    count++;
  }

  /** Adds what happened beside the steps. */
  void note(long nanos, String text) {
    add(nanos, text.hashCode(), "       " + text);
  }

  private void add(long nanos, long what, String text) {
    mix(nanos);
    mix(what);
    if (last.size() == KEPT) {
      last.removeFirst();
    }
    last.addLast(new Step(nanos, text));
  }

  private void mix(long value) {
    hash = (hash ^ value) * PRIME;
    hash ^= hash >>> 29;
  }

  long hash() {
    return hash;
  }

  long count() {
    return count;
  }

  /** Returns the last steps as lines. */
  String last() {
    StringBuilder text = new StringBuilder("\nthe last of ").append(count).append(" steps:");
    for (Step step : last) {
      text.append("\n  %12.6f ms  %s".formatted(step.nanos / 1e6, step.text));
    }
    return text.toString();
  }
}
