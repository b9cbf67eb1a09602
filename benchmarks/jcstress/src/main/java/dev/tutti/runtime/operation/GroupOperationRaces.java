package dev.tutti.runtime.operation;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;

import dev.tutti.GroupListener.OpEvent;
import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.WorkState;
import dev.tutti.spi.Call;
import java.time.Duration;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;
import org.openjdk.jcstress.infra.results.L_Result;
import org.openjdk.jcstress.infra.results.Z_Result;

/** Races between the loops in which users wait for an operation, and what ends the waits. */
public final class GroupOperationRaces {
  private static final Duration LONG = Duration.ofSeconds(10);
  private static final OpEvent EVENT =
      new IssuedEvent(
          1, "raced", 0, OpType.BARRIER, 1, true, OptionalInt.empty(), List.of(), List.of());

  private GroupOperationRaces() {}

  private static GroupOperation operation() {
    return RacedOperation.ofBackend(RacedOperation.CLOSED, new Call(OpType.BARRIER));
  }

  /** A thread that waits returns when the operation ends, however that falls together. */
  @JCStressTest
  @Outcome(id = "true", expect = ACCEPTABLE, desc = "the wait ended, and not at its limit")
  @State
  public static class AwaitAgainstEnd {
    private final GroupOperation op = operation();

    @Actor
    public void user(Z_Result result) {
      result.r1 = op.await(LONG) && op.isEnded();
    }

    @Actor
    public void backend() {
      op.complete();
    }
  }

  /** A thread that waits for a backend then waits for the device. */
  @JCStressTest
  @Outcome(id = "true", expect = ACCEPTABLE, desc = "the device completed it for the waiter")
  @State
  public static class AwaitAgainstDevice {
    private final GroupOperation op =
        RacedOperation.ofBackend(RacedOperation.CLOSED, new Call(OpType.SEND).root(1));
    private final RacedEvent event = new RacedEvent();

    @Actor
    public void user(Z_Result result) {
      boolean isEnqueued = op.parkUntilEnqueued(System.nanoTime() + LONG.toNanos(), true);
      result.r1 = isEnqueued && op.await(LONG) && op.currentState() == WorkState.COMPLETED;
    }

    @Actor
    public void backend() {
      op.enqueued(event);
      event.isReached = true;
    }
  }

  /** A future that is asked for while the operation ends is completed. */
  @JCStressTest
  @Outcome(id = "done", expect = ACCEPTABLE, desc = "by the thread that ended it, or at once")
  @State
  public static class FutureAgainstEnd {
    private final GroupOperation op = operation();
    private volatile CompletableFuture<List<Tensor>> future;

    @Actor
    public void user() {
      future = op.toCompletableFuture();
    }

    @Actor
    public void backend() {
      op.complete();
    }

    @Arbiter
    public void arbiter(L_Result result) {
      try {
        List<Tensor> _ = future.get(LONG.toSeconds(), TimeUnit.SECONDS);
        result.r1 = "done";
      } catch (Exception e) {
        result.r1 = e.toString();
      }
    }
  }

  /** An owner that counts how often it is asked to notify listeners of the end. */
  private static final class Telling extends RacedOperation.Closed {
    private int told;

    @Override
    public void ended(GroupOperation op, WorkState state, TuttiException cause, OpEvent toTell) {
      told += toTell == null ? 0 : 1;
    }
  }

  /** Listeners that are notified of an operation while it ends are notified of its end once. */
  @JCStressTest
  @Outcome(id = "1, 0", expect = ACCEPTABLE, desc = "by the thread that notified of the beginning")
  @Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "by the thread that ended it")
  @State
  public static class TellAgainstEnd {
    private final Telling owner = new Telling();
    private final GroupOperation op = RacedOperation.ofBackend(owner, new Call(OpType.BARRIER));

    @Actor
    public void issuer(II_Result result) {
      result.r1 = op.tell(EVENT, false) ? 1 : 0;
    }

    @Actor
    public void backend() {
      op.complete();
    }

    @Arbiter
    public void arbiter(II_Result result) {
      result.r2 = owner.told;
    }
  }

  /** The same if the caller is to notify of the end, and does so if it has come by then. */
  @JCStressTest
  @Outcome(id = "1, 0", expect = ACCEPTABLE, desc = "by the caller")
  @Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "by the thread that ended it")
  @State
  public static class CallerTellsAgainstEnd {
    private final Telling owner = new Telling();
    private final GroupOperation op = RacedOperation.ofBackend(owner, new Call(OpType.BARRIER));

    @Actor
    public void caller(II_Result result) {
      boolean _ = op.tell(EVENT, true);
      result.r1 = op.takeEndForCaller() == null ? 0 : 1;
    }

    @Actor
    public void backend() {
      op.complete();
    }

    @Arbiter
    public void arbiter(II_Result result) {
      result.r2 = owner.told;
    }
  }
}
