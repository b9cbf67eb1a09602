package dev.tutti.runtime.operation;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;

import dev.tutti.WorkState;
import java.util.concurrent.TimeUnit;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;
import org.openjdk.jcstress.infra.results.I_Result;
import org.openjdk.jcstress.infra.results.L_Result;

/** Races between the ends of an operation, and between them and its waiters. */
public final class OperationRaces {
  private OperationRaces() {}

  @JCStressTest
  @Outcome(id = "1 COMPLETED", expect = ACCEPTABLE, desc = "the backend was first")
  @Outcome(id = "1 TIMED_OUT", expect = ACCEPTABLE, desc = "the deadline was first")
  @State
  public static class CompleteAgainstTimeout {
    private final RacedOperation op = new RacedOperation(null);

    @Actor
    public void backend() {
      op.complete();
    }

    @Actor
    public void watchdog() {
      op.endFailed(WorkState.TIMED_OUT, RacedOperation.CAUSE);
    }

    @Arbiter
    public void arbiter(L_Result result) {
      result.r1 = op.verdict();
    }
  }

  @JCStressTest
  @Outcome(id = "1 ABORTED", expect = ACCEPTABLE, desc = "the abort was first")
  @Outcome(id = "1 TIMED_OUT", expect = ACCEPTABLE, desc = "the deadline was first")
  @State
  public static class AbortAgainstTimeout {
    private final RacedOperation op = new RacedOperation(null);

    @Actor
    public void user() {
      op.endFailed(WorkState.ABORTED, RacedOperation.CAUSE);
    }

    @Actor
    public void watchdog() {
      op.endFailed(WorkState.TIMED_OUT, RacedOperation.CAUSE);
    }

    @Arbiter
    public void arbiter(L_Result result) {
      result.r1 = op.verdict();
    }
  }

  @JCStressTest
  @Outcome(id = "1 COMPLETED", expect = ACCEPTABLE, desc = "both agree, one ended it")
  @State
  public static class CompleteTwice {
    private final RacedOperation op = new RacedOperation(null);

    @Actor
    public void backend() {
      op.complete();
    }

    @Actor
    public void device() {
      op.completeFrom(3);
    }

    @Arbiter
    public void arbiter(L_Result result) {
      result.r1 = op.verdict();
    }
  }

  @JCStressTest
  @Outcome(id = "1 COMPLETED", expect = ACCEPTABLE, desc = "completed, the failure came late")
  @Outcome(id = "0 RUNNING reported", expect = ACCEPTABLE, desc = "failed; the verdict is awaited")
  @State
  public static class CompleteAgainstFail {
    private final RacedOperation op = new RacedOperation(null);

    @Actor
    public void backend() {
      op.complete();
    }

    @Actor
    public void reader() {
      op.fail(RacedOperation.CAUSE, 0);
    }

    @Arbiter
    public void arbiter(L_Result result) {
      result.r1 =
          op.ends.get() + " " + op.currentState() + (op.reported() == null ? "" : " reported");
    }
  }

  /**
   * The finisher copies results back: nobody may see COMPLETED before that, or the end in between.
   */
  @JCStressTest
  @Outcome(id = "-1, 42", expect = ACCEPTABLE, desc = "not yet completed when looked at")
  @Outcome(id = "42, 42", expect = ACCEPTABLE, desc = "completed, and the data is there")
  @State
  public static class LookAtResult {
    private int data;
    private int copied;
    private final RacedOperation op = new RacedOperation(() -> copied = data);

    @Actor
    public void backend() {
      data = 42;
      op.complete();
    }

    @Actor
    public void user(II_Result result) {
      result.r1 = op.currentState() == WorkState.COMPLETED ? copied : -1;
    }

    @Arbiter
    public void arbiter(II_Result result) {
      result.r2 = copied;
    }
  }

  @JCStressTest
  @Outcome(id = "42", expect = ACCEPTABLE, desc = "woken, and the data is there")
  @State
  public static class AwaitResult {
    private int data;
    private final RacedOperation op = new RacedOperation(null);

    @Actor
    public void backend() {
      data = 42;
      op.complete();
    }

    @Actor
    public void user(I_Result result) {
      boolean ended = op.parkUntilEnded(System.nanoTime() + TimeUnit.SECONDS.toNanos(10), false);
      result.r1 = ended ? data : -1;
    }
  }

  /** A waiter on the backend's side is woken by a failure that another thread reports. */
  @JCStressTest
  @Outcome(id = "42", expect = ACCEPTABLE, desc = "woken, and sees what was before the report")
  @State
  public static class AwaitFailure {
    private int data;
    private final RacedOperation op = new RacedOperation(null);

    @Actor
    public void reader() {
      data = 42;
      op.fail(RacedOperation.CAUSE, 0);
    }

    @Actor
    public void backend(I_Result result) {
      boolean done = op.parkUntilDone(System.nanoTime() + TimeUnit.SECONDS.toNanos(10));
      result.r1 = done && op.reported() == RacedOperation.CAUSE ? data : -1;
    }
  }
}
