package dev.tutti.runtime.operation;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;

import dev.tutti.WorkState;
import dev.tutti.spi.Time;
import java.util.List;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.TimeUnit;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.L_Result;
import org.openjdk.jcstress.infra.results.ZZ_Result;

/** Races between deadlines and completion, and between deadlines and the watchdog's sleep. */
public final class WatchdogRaces {
  private WatchdogRaces() {}

  @JCStressTest
  @Outcome(id = "COMPLETED false", expect = ACCEPTABLE, desc = "completed first")
  @Outcome(id = "ABORTED true", expect = ACCEPTABLE, desc = "found overdue first")
  @State
  public static class DeadlineAgainstCompletion {
    private final PendingOperations pending =
        new PendingOperations(RacedOperation.CLOSED, List.of(), 0);
    private final GroupOperation op = pending.inline;
    private final long now = System.nanoTime();

    public DeadlineAgainstCompletion() {
      op.issue(1, now, now, WorkState.RUNNING);
    }

    @Actor
    public void backend() {
      // Since the group is being closed, a reported failure leaves the state to the watchdog.
      op.complete();
    }

    @Actor
    public void watchdog() {
      pending.checkDeadlines(now + TimeUnit.MINUTES.toNanos(1));
    }

    @Arbiter
    public void arbiter(L_Result result) {
      result.r1 = op.currentState() + " " + (op.failure() != null);
    }
  }

  /** A reissued operation must not be mistaken for its overdue predecessor. */
  @JCStressTest
  @Outcome(id = "RUNNING", expect = ACCEPTABLE, desc = "the new deadline counts")
  @State
  public static class DeadlineAgainstNextLife {
    private final PendingOperations pending =
        new PendingOperations(RacedOperation.CLOSED, List.of(), 0);
    private final GroupOperation op = pending.inline;
    private final long now = System.nanoTime();
    private final long later = now + TimeUnit.MINUTES.toNanos(1);

    public DeadlineAgainstNextLife() {
      op.issue(1, now, now, WorkState.RUNNING);
      op.complete();
    }

    @Actor
    public void backend() {
      op.issue(2, later, later + TimeUnit.MINUTES.toNanos(1), WorkState.RUNNING);
    }

    @Actor
    public void watchdog() {
      pending.checkDeadlines(later);
    }

    @Arbiter
    public void arbiter(L_Result result) {
      result.r1 = op.currentState().toString();
    }
  }

  /** Two operations announce deadlines while the thread is about to sleep for up to a second. */
  @JCStressTest
  @Outcome(id = "true, true", expect = ACCEPTABLE, desc = "looked in time")
  @State
  public static class ExpectAgainstSleep {
    /** Holds each deadline until a check that comes after it. */
    private static final ConcurrentSkipListSet<Long> DEADLINES = new ConcurrentSkipListSet<>();

    private static final Watchdog WATCHDOG = Watchdog.of(Time.SYSTEM);
    private static volatile long looked = System.nanoTime();

    static {
      WATCHDOG.watch(
          now -> {
            DEADLINES.headSet(now, true).clear();
            Long next = DEADLINES.ceiling(now);
            looked = now;
            return next == null ? now + Watchdog.PERIOD_NANOS : next;
          });
    }

    private long first;
    private long second;

    @Actor
    public void one() {
      first = expect();
    }

    @Actor
    public void other() {
      second = expect();
    }

    private static long expect() {
      long deadline = System.nanoTime() + 1_000;
      DEADLINES.add(deadline);
      WATCHDOG.expect(deadline);
      return deadline;
    }

    @Arbiter
    public void arbiter(ZZ_Result result) {
      result.r1 = looksAfter(first);
      result.r2 = looksAfter(second);
    }

    private static boolean looksAfter(long deadline) {
      long limit = deadline + TimeUnit.MILLISECONDS.toNanos(600);
      while (looked - deadline < 0) {
        if (System.nanoTime() - limit > 0) {
          return false;
        }
        Thread.onSpinWait();
      }
      return true;
    }
  }
}
