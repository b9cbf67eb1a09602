package dev.tutti.testing;

import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The times at which ranks make a call with a short timeout. On a busy machine, a rank may call so
 * late that it looks as absent as one that stays away; such a run proves nothing.
 */
final class CallTimes {
  private final AtomicReference<Span> span = new AtomicReference<>();

  /** The first and the last call, in terms of {@link System#nanoTime()}. */
  private record Span(long first, long last) {
    Span with(long call) {
      return new Span(call - first < 0 ? call : first, call - last > 0 ? call : last);
    }
  }

  /** A test in a world of its own. */
  @FunctionalInterface
  interface Attempt {
    /** Returns false if a rank called so late that the run proves nothing. */
    boolean isPunctual(Duration timeout) throws Exception;
  }

  private CallTimes() {}

  /** Attempts a test with a timeout, and with four times more until it is punctual. */
  static void repeat(Duration shortest, Attempt attempt) throws Exception {
    Duration timeout = shortest;
    while (!attempt.isPunctual(timeout)) {
      timeout = timeout.multipliedBy(4);
    }
  }

  /**
   * Lets the first ranks of a world make a call at the same time, and waits until it has ended on
   * all of them; the other ranks stay away.
   *
   * @param callers the number of ranks that call
   * @param timeout the timeout of the call, within half of which all of them must make it
   * @param call makes and checks the call
   * @param after runs on all ranks afterwards
   * @return whether all called in time; if not, the checks do not count, and nothing runs after
   *     them
   */
  static boolean arePunctual(
      ContractWorld world,
      int callers,
      Duration timeout,
      ContractWorld.Body call,
      ContractWorld.Body after)
      throws Exception {
    CountDownLatch ended = new CountDownLatch(callers);
    CallTimes times = new CallTimes();
    world.run(
        member -> {
          // Whose thread starts late would be as absent as those that stay away.
          member.meet();
          AssertionError wrong = null;
          if (member.rank() < callers) {
            times.note();
            wrong = catchThrowableOfType(AssertionError.class, () -> call.run(member));
            ended.countDown();
          }
          Waiting.open(ended);
          if (times.areWithin(timeout.dividedBy(2))) {
            if (wrong != null) {
              throw wrong;
            }
            after.run(member);
          }
        });
    return times.areWithin(timeout.dividedBy(2));
  }

  private void note() {
    long now = System.nanoTime();
    Span _ =
        span.accumulateAndGet(
            new Span(now, now), (noted, own) -> noted == null ? own : noted.with(now));
  }

  private boolean areWithin(Duration most) {
    Span noted = span.get();
    return noted == null || noted.last - noted.first < most.toNanos();
  }
}
