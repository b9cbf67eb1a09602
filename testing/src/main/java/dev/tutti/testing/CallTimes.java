package dev.tutti.testing;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The times at which ranks make a call with a short timeout. On a busy machine, a rank may call so
 * late that it looks as absent as one that stays away.
 */
final class CallTimes {
  private final Duration most;
  private final AtomicReference<Span> span = new AtomicReference<>();

  /** The first and the last call, in terms of {@link System#nanoTime()}. */
  private record Span(long first, long last) {
    Span with(long call) {
      return new Span(call - first < 0 ? call : first, call - last > 0 ? call : last);
    }
  }

  /** Creates times of no calls, which are close if they lie within the given one. */
  CallTimes(Duration most) {
    this.most = most;
  }

  /** Notes that this thread is about to call. */
  void note() {
    long now = System.nanoTime();
    Span _ =
        span.accumulateAndGet(
            new Span(now, now), (noted, own) -> noted == null ? own : noted.with(now));
  }

  /** Tells whether all calls noted so far lie close together. */
  boolean areClose() {
    Span noted = span.get();
    return noted == null || noted.last - noted.first < most.toNanos();
  }
}
