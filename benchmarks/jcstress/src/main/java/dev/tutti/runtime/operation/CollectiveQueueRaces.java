package dev.tutti.runtime.operation;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;

import dev.tutti.spi.Time;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;
import org.openjdk.jcstress.infra.results.L_Result;

/** Races between callers of a queue, and between callers and its worker. */
public final class CollectiveQueueRaces {
  private static final long LONG = TimeUnit.SECONDS.toNanos(10);

  /** What the shared queue's worker should do for each operation. */
  private static final Map<GroupOperation, Runnable> TASKS = new ConcurrentHashMap<>();

  /** Shared by all states of a test, since starting a worker for each would take too long. */
  private static final CollectiveQueue LANE =
      new CollectiveQueue("raced", op -> TASKS.remove(op).run(), Time.SYSTEM);

  private CollectiveQueueRaces() {}

  @JCStressTest
  @Outcome(id = "1, 2, 2", expect = ACCEPTABLE, desc = "one after the other")
  @Outcome(id = "2, 1, 2", expect = ACCEPTABLE, desc = "one after the other")
  @Outcome(id = "1, 0, 1", expect = ACCEPTABLE, desc = "the second found it taken")
  @Outcome(id = "0, 1, 1", expect = ACCEPTABLE, desc = "the first found it taken")
  @State
  public static class TryEnter {
    private final CollectiveQueue queue = new CollectiveQueue("raced", op -> {}, Time.SYSTEM);
    private int inside;

    @Actor
    public void one(III_Result result) {
      result.r1 = pass();
    }

    @Actor
    public void other(III_Result result) {
      result.r2 = pass();
    }

    private int pass() {
      int number = (int) queue.tryEnter();
      if (number > 0) {
        inside++;
        queue.exit();
      }
      return number;
    }

    @Arbiter
    public void arbiter(III_Result result) {
      result.r3 = inside;
    }
  }

  /**
   * A caller that must not wait, and one that queues: each number is given once, and no two run at
   * once.
   */
  @JCStressTest
  @Outcome(id = "1, 2, 2", expect = ACCEPTABLE, desc = "the caller first")
  @Outcome(id = "0, 1, 1", expect = ACCEPTABLE, desc = "the caller found it taken")
  @Outcome(id = "2, 1, 2", expect = ACCEPTABLE, desc = "the caller last")
  @State
  public static class TryEnterAgainstQueue {
    private final GroupOperation op = new GroupOperation(RacedOperation.CLOSED, false);
    private final CountDownLatch ran = new CountDownLatch(1);
    private int inside;
    private final CollectiveQueue queue =
        new CollectiveQueue(
            "raced",
            queued -> {
              inside++;
              ran.countDown();
            },
            Time.SYSTEM);

    @Actor
    public void caller(III_Result result) {
      int number = (int) queue.tryEnter();
      if (number > 0) {
        inside++;
        queue.exit();
      }
      result.r1 = number;
    }

    @Actor
    public void issuer(III_Result result) {
      queue.enqueue(op, number -> result.r2 = (int) number, false);
    }

    @Arbiter
    public void arbiter(III_Result result) {
      try {
        boolean came = ran.await(LONG, TimeUnit.NANOSECONDS);
        result.r3 = came ? inside : -1;
        queue.stop();
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
    }
  }

  /** A thread that waits for its turn gets it from the thread that leaves. */
  @JCStressTest
  @Outcome(id = "1, 2, 2", expect = ACCEPTABLE, desc = "both came through")
  @Outcome(id = "2, 1, 2", expect = ACCEPTABLE, desc = "both came through")
  @State
  public static class Enter {
    private final CollectiveQueue queue = new CollectiveQueue("raced", op -> {}, Time.SYSTEM);
    private int inside;

    @Actor
    public void one(III_Result result) {
      result.r1 = pass();
    }

    @Actor
    public void other(III_Result result) {
      result.r2 = pass();
    }

    private int pass() {
      int number = (int) queue.enter(System.nanoTime() + LONG);
      if (number > 0) {
        inside++;
        queue.exit();
      }
      return number;
    }

    @Arbiter
    public void arbiter(III_Result result) {
      result.r3 = inside;
    }
  }

  /**
   * Two threads queue: the worker runs both operations once each, in the order of their numbers.
   */
  @JCStressTest
  @Outcome(id = "in order", expect = ACCEPTABLE, desc = "none lost, none overtaken")
  @State
  public static class Queue {
    private final GroupOperation first = new GroupOperation(RacedOperation.CLOSED, false);
    private final GroupOperation second = new GroupOperation(RacedOperation.CLOSED, false);
    private long firstNumber;
    private long secondNumber;
    private int ran;
    private volatile int firstRan;
    private volatile int secondRan;

    @Actor
    public void one() {
      TASKS.put(first, () -> firstRan = next());
      LANE.enqueue(first, number -> firstNumber = number, false);
    }

    @Actor
    public void other() {
      TASKS.put(second, () -> secondRan = next());
      LANE.enqueue(second, number -> secondNumber = number, true);
      LANE.release(second);
    }

    private int next() {
      return ++ran;
    }

    @Arbiter
    public void arbiter(L_Result result) {
      long limit = System.nanoTime() + LONG;
      while (firstRan == 0 || secondRan == 0) {
        if (System.nanoTime() - limit > 0) {
          result.r1 = "lost: " + firstRan + secondRan;
          return;
        }
        Thread.onSpinWait();
      }
      boolean inOrder = (firstNumber < secondNumber) == (firstRan < secondRan);
      result.r1 = inOrder ? "in order" : "overtaken";
    }
  }

  /**
   * A caller on its own thread and a queued operation: they never run at once, and neither is lost.
   */
  @JCStressTest
  @Outcome(id = "2", expect = ACCEPTABLE, desc = "the turn went from one to the other")
  @State
  public static class EnterAgainstQueue {
    private final GroupOperation op = new GroupOperation(RacedOperation.CLOSED, false);
    private int inside;
    private volatile boolean ran;

    @Actor
    public void caller() {
      if (LANE.enter(System.nanoTime() + LONG) > 0) {
        inside++;
        LANE.exit();
      }
    }

    @Actor
    public void issuer() {
      TASKS.put(
          op,
          () -> {
            inside++;
            ran = true;
          });
      LANE.enqueue(op, number -> {}, false);
    }

    @Arbiter
    public void arbiter(L_Result result) {
      long limit = System.nanoTime() + LONG;
      while (!ran && System.nanoTime() - limit < 0) {
        Thread.onSpinWait();
      }
      result.r1 = ran ? Integer.toString(inside) : "lost";
    }
  }
}
