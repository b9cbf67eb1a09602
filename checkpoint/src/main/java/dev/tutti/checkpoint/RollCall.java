package dev.tutti.checkpoint;

import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.spi.Time;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

/** Lets ranks that wait for checkpoints notice one that stands still as soon as in a collective. */
final class RollCall {
  /*
   * A rank may write for longer than a collective may take, so the group of checkpoints has a long
   * deadline, and its waits say nothing about a rank that stands still. While a rank waits there,
   * another of its threads reduces with the others in the group of training, again and again, until
   * all ranks are done. A rank that stands still does not come, so that group fails; then the group
   * of checkpoints is revoked, which ends the wait.
   */
  private static final System.Logger LOG = System.getLogger(RollCall.class.getName());
  private static final long EVERY_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final ProcessGroup group;
  private final ProcessGroup beside;
  private final Time time;
  private volatile boolean isDone;

  /**
   * Creates a roll call for a single wait.
   *
   * @param group the group of training, which no other thread uses meanwhile
   * @param beside the group in which the ranks wait
   */
  RollCall(ProcessGroup group, ProcessGroup beside, Time time) {
    this.group = group;
    this.beside = beside;
    this.time = time;
  }

  /**
   * Waits for the other ranks, which make the same call.
   *
   * @param wait what waits, and ends if the group beside fails
   */
  <T> T during(Supplier<T> wait) {
    Thread caller = time.start("tutti-checkpoint-call-" + group.rank(), this::call);
    try {
      return wait.get();
    } finally {
      isDone = true;
      LockSupport.unpark(caller);
      join(caller);
    }
  }

  private void join(Thread caller) {
    boolean isInterrupted = Thread.interrupted();
    while (caller.isAlive()) {
      try {
        boolean _ = time.join(caller, EVERY_NANOS);
      } catch (InterruptedException e) {
        isInterrupted = true;
      }
    }
    if (isInterrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private void call() {
    try {
      boolean areAllDone = false;
      while (!areAllDone) {
        awaitTurn();
        Tensor done = Tensor.of(isDone ? 1L : 0L);
        group.allReduce(done, ReduceOp.MIN);
        areAllDone = done.getLong(0) == 1;
      }
    } catch (TuttiException e) {
      LOG.log(Level.DEBUG, "rank {0}: {1}", group.rank(), e.getMessage());
      beside.revoke("a rank does not answer while others wait: " + e.getMessage());
    }
  }

  private void awaitTurn() {
    long until = time.deadline(Duration.ofNanos(EVERY_NANOS));
    for (long left = EVERY_NANOS; left > 0 && !isDone; left = until - time.nanoTime()) {
      time.park(this, left);
    }
  }
}
