package dev.tutti.runtime.operation;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;

import dev.tutti.OpType;
import dev.tutti.WorkState;
import dev.tutti.spi.Call;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.L_Result;
import org.openjdk.jcstress.infra.results.Z_Result;

/** Races between threads that issue operations and those that end, await or look at all. */
public final class PendingOperationsRaces {
  private static final long LONG = TimeUnit.SECONDS.toNanos(10);

  private PendingOperationsRaces() {}

  /**
   * A message is issued while the group fails: either the failure finds it, or its issuer finds the
   * failure.
   */
  @JCStressTest
  @Outcome(id = "ABORTED", expect = ACCEPTABLE, desc = "ended by one of both")
  @State
  public static class AddAgainstFailure {
    private final PendingOperations pending =
        new PendingOperations(RacedOperation.CLOSED, List.of(), 0);
    private final GroupOperation op =
        RacedOperation.ofBackend(RacedOperation.CLOSED, new Call(OpType.SEND).root(1));
    private volatile boolean isSettled;

    @Actor
    public void issuer() {
      pending.add(op);
      if (isSettled) {
        RacedOperation.CLOSED.endFailed(op);
      }
    }

    @Actor
    public void failure() {
      isSettled = true;
      pending.endUnattended();
    }

    @Arbiter
    public void arbiter(L_Result result) {
      result.r1 = op.currentState().toString();
    }
  }

  /** A group that closes while its last operation ends waits for it and no longer. */
  @JCStressTest
  @Outcome(id = "true", expect = ACCEPTABLE, desc = "it ended, and was seen to")
  @State
  public static class AwaitAgainstEnd {
    private final PendingOperations pending =
        new PendingOperations(RacedOperation.CLOSED, List.of(), 0);
    private final GroupOperation op =
        RacedOperation.ofBackend(RacedOperation.CLOSED, new Call(OpType.BARRIER));

    public AwaitAgainstEnd() {
      pending.add(op);
    }

    @Actor
    public void closer(Z_Result result) {
      result.r1 = pending.await(System.nanoTime() + LONG) && op.isEnded();
    }

    @Actor
    public void backend() {
      op.complete();
      pending.remove(op);
    }
  }

  /** A collective reaches its stream while the watchdog looks which the device has completed. */
  @JCStressTest
  @Outcome(id = "COMPLETED, released once", expect = ACCEPTABLE, desc = "by this look or the next")
  @State
  public static class IssueAgainstLook {
    private final PendingOperations pending =
        new PendingOperations(RacedOperation.CLOSED, List.of(), 0);
    private final RacedEvent event = new RacedEvent();
    private final long now = System.nanoTime();
    private volatile GroupOperation op;

    @Actor
    public void issuer() {
      GroupOperation next = pending.onStream.next();
      next.issue(1, now, now + LONG, WorkState.RUNNING);
      pending.onStream.add();
      next.enqueued(event);
      event.isReached = true;
      op = next;
    }

    @Actor
    public void watchdog() {
      pending.checkDeadlines(now);
    }

    @Arbiter
    public void arbiter(L_Result result) {
      pending.checkDeadlines(now);
      result.r1 =
          op.currentState() + ", released " + (event.releases == 1 ? "once" : event.releases);
    }
  }
}
