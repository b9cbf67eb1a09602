package dev.tutti.testing;

import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;

/**
 * The times at which ranks make a call with a short timeout. On a busy machine, a rank may call so
 * late that it looks as absent as one that stays away; such a run proves nothing.
 */
final class CallTimes {
  private static final System.Logger LOG = System.getLogger(CallTimes.class.getName());

  private static final int MOST_RUNS = 8;

  /** A call with a longer timeout may outlast the time for which ranks wait for each other. */
  private static final Duration LONGEST = Waiting.LONG.dividedBy(4);

  private final Queue<Caller> callers = new ConcurrentLinkedQueue<>();
  private final int count;
  private final AtomicBoolean punctual = new AtomicBoolean();

  /**
   * A rank that is about to make its call.
   *
   * @param member the rank
   * @param number the number of its last collective
   * @param nanos the time, in terms of {@link System#nanoTime()}
   * @param hasEnded whether the call has ended; one that was refused has no number
   */
  private record Caller(Member member, long number, long nanos, AtomicBoolean hasEnded) {
    boolean hasCalled() {
      return hasEnded.get() || member.group().sequenceNumber() > number;
    }
  }

  /** A test in a world of its own. */
  @FunctionalInterface
  interface Attempt {
    /** Returns false if a rank called so late that it proves nothing. */
    boolean isPunctual(Duration timeout) throws Exception;
  }

  private CallTimes(int count) {
    this.count = count;
  }

  /** Attempts a test with a timeout, and with four times more, within limits, until punctual. */
  static void repeat(Duration shortest, Attempt attempt) throws Exception {
    Duration timeout = shortest;
    for (int run = 1; !attempt.isPunctual(timeout); run++) {
      if (run == MOST_RUNS) {
        throw new AssertionError(
            "in each of %d runs, a rank called late, at last after half of %s"
                .formatted(run, timeout));
      }
      LOG.log(Level.INFO, "repeats a test whose timeout of {0} was too short here", timeout);
      Duration longer = timeout.multipliedBy(4);
      timeout = longer.compareTo(LONGEST) < 0 ? longer : LONGEST;
    }
  }

  /**
   * Lets some ranks of a world make a collective call at the same time, and waits until it has
   * ended on all of them; the other ranks stay away.
   *
   * @param calls tells which ranks call
   * @param timeout the timeout of the call, within half of which all of them must make it
   * @param call makes and checks the call
   * @param after runs on all ranks afterwards
   * @return whether all called in time; if not, the checks do not count, and nothing runs after
   *     them
   */
  static boolean arePunctual(
      ContractWorld world,
      IntPredicate calls,
      Duration timeout,
      ContractWorld.Body call,
      ContractWorld.Body after)
      throws Exception {
    int callers = (int) IntStream.range(0, world.size()).filter(calls).count();
    CountDownLatch ended = new CountDownLatch(callers);
    CallTimes times = new CallTimes(callers);
    Thread watch = Thread.startVirtualThread(() -> times.watch(timeout));
    try {
      world.run(
          member -> {
            // Whose thread starts late would be as absent as those that stay away.
            member.meet();
            AssertionError wrong = null;
            if (calls.test(member.rank())) {
              Caller caller = times.note(member);
              wrong = catchThrowableOfType(AssertionError.class, () -> call.run(member));
              caller.hasEnded.set(true);
              ended.countDown();
            }
            Waiting.open(ended);
            watch.join();
            if (times.punctual.get()) {
              if (wrong != null) {
                throw wrong;
              }
              after.run(member);
            }
          });
    } finally {
      watch.interrupt();
    }
    return times.punctual.get();
  }

  private Caller note(Member member) {
    long number = member.group().sequenceNumber();
    Caller caller = new Caller(member, number, System.nanoTime(), new AtomicBoolean());
    callers.add(caller);
    return caller;
  }

  /** Sees whether all ranks have called before half of the timeout of the first has passed. */
  private void watch(Duration timeout) {
    while (!Thread.interrupted()) {
      boolean isComplete = callers.size() == count && callers.stream().allMatch(Caller::hasCalled);
      long now = System.nanoTime();
      boolean isLate =
          callers.stream().anyMatch(caller -> now - caller.nanos > timeout.toNanos() / 2);
      if (isComplete || isLate) {
        punctual.set(isComplete && !isLate);
        return;
      }
      LockSupport.parkNanos(1_000_000);
    }
  }
}
