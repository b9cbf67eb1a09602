package dev.tutti.testing;

import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntPredicate;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/**
 * The times at which ranks make a call with a short timeout. On a busy machine, a rank may call so
 * late that it looks as absent as one that stays away, or stand still until it blames itself, does
 * not answer or report what it called, or finds that the store does not answer; such a run proves
 * nothing.
 */
final class CallTimes {
  private static final System.Logger LOG = System.getLogger(CallTimes.class.getName());

  /** A call with a longer timeout may outlast the time for which ranks wait for each other. */
  private static final Duration LONGEST = Waiting.LONG.dividedBy(4);

  private final AtomicReference<Span> span = new AtomicReference<>();
  private volatile boolean tooSlow;

  /** The first and the last call, in terms of {@link System#nanoTime()}. */
  private record Span(long first, long last) {
    Span with(long call) {
      return new Span(call - first < 0 ? call : first, call - last > 0 ? call : last);
    }
  }

  /** A test in a world of its own. */
  @FunctionalInterface
  interface Attempt {
    /**
     * Returns false if a rank called so late, or stood still for so long, that it proves nothing.
     */
    boolean isPunctual(Duration timeout) throws Exception;
  }

  private CallTimes() {}

  /** Attempts a test with a timeout, and with four times more, within limits, until punctual. */
  static void repeat(Duration shortest, Attempt attempt) throws Exception {
    Duration timeout = shortest;
    while (!attempt.isPunctual(timeout)) {
      LOG.log(Level.INFO, "repeats a test whose timeout of {0} was too short here", timeout);
      Duration longer = timeout.multipliedBy(4);
      timeout = longer.compareTo(LONGEST) < 0 ? longer : LONGEST;
    }
  }

  /**
   * Runs a body on all ranks, and a new one if a check failed because a rank stood still and so
   * blamed itself.
   */
  static void repeatStandstills(ContractWorld world, Supplier<ContractWorld.Body> bodies)
      throws Exception {
    while (true) {
      try {
        world.run(bodies.get());
        return;
      } catch (AssertionError wrong) {
        if (!world.isInOneJvm() || !saysTooSlow(wrong.toString())) {
          throw wrong;
        }
        LOG.log(Level.INFO, "repeats a test, because the machine is busy: {0}", wrong);
      }
    }
  }

  /**
   * Lets some ranks of a world make a call at the same time, and waits until it has ended on all of
   * them; the other ranks stay away.
   *
   * @param calls tells which ranks call
   * @param timeout the timeout of the call, within half of which all of them must make it
   * @param call makes and checks the call; a failed check must say what the call threw
   * @param after runs on all ranks afterwards
   * @return whether all called in time and none stood still; if not, the checks do not count, and
   *     nothing runs after them
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
    CallTimes times = new CallTimes();
    world.run(
        member -> {
          // Whose thread starts late would be as absent as those that stay away.
          member.meet();
          AssertionError wrong = null;
          if (calls.test(member.rank())) {
            times.note();
            wrong = catchThrowableOfType(AssertionError.class, () -> call.run(member));
            if (wrong != null && saysTooSlow(wrong.toString())) {
              times.tooSlow = true;
            }
            ended.countDown();
          }
          Waiting.open(ended);
          if (times.prove(timeout)) {
            if (wrong != null) {
              throw wrong;
            }
            after.run(member);
          }
        });
    return times.prove(timeout);
  }

  private static boolean saysTooSlow(String text) {
    return text.contains("was paused until now")
        || text.contains(" does not answer")
        || text.contains("did not report a call in time");
  }

  private void note() {
    long now = System.nanoTime();
    Span _ =
        span.accumulateAndGet(
            new Span(now, now), (noted, own) -> noted == null ? own : noted.with(now));
  }

  private boolean prove(Duration timeout) {
    Span noted = span.get();
    return !tooSlow && (noted == null || noted.last - noted.first < timeout.toNanos() / 2);
  }
}
