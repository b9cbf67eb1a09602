package dev.tutti.internal;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/** Runs the collectives of a group one at a time, in the order in which they were issued. */
final class Lane {
  /*
   * Under "lock": either nobody runs, or a caller runs inline, or the worker runs an operation; the
   * runner is "owner". A caller may go inline only when nobody runs and nothing is queued; else it
   * queues behind. Number and place in the order are given under the same lock, so that numbers
   * follow the order. No code of users or backends runs under the lock.
   *
   * An operation may be queued on hold: it has its number and its place, but the worker waits with it
   * until its issuer, who is telling listeners, releases it.
   *
   * "work" wakes the worker, "free" those who wait for a turn or for idleness; neither is signalled
   * when nobody waits for it, so that an inline call costs no wake-up of an idle worker. The worker
   * starts with the first operation that needs it, and ends when it had nothing to do for a while or
   * the lane stopped.
   */
  /** Is returned instead of a number when the operation must queue. */
  static final long TAKEN = 0;

  /** Is returned instead of a number when the lane has stopped. */
  static final long STOPPED = -1;

  private static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(10);

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition work = lock.newCondition();
  private final Condition free = lock.newCondition();
  private final ArrayDeque<Queued> queue = new ArrayDeque<>();
  private final String threadName;
  private final Consumer<GroupOperation> runner;
  private @Nullable Thread owner;
  private @Nullable Thread worker;
  private boolean stopped;
  private long sequence;

  private static final class Queued {
    final GroupOperation op;
    @Nullable Thread heldBy;

    Queued(GroupOperation op, @Nullable Thread heldBy) {
      this.op = op;
      this.heldBy = heldBy;
    }
  }

  /**
   * Creates a lane.
   *
   * @param threadName names the worker
   * @param runner runs an operation; must not throw
   */
  Lane(String threadName, Consumer<GroupOperation> runner) {
    this.threadName = threadName;
    this.runner = runner;
  }

  /** Returns the number of operations issued. */
  long sequence() {
    lock.lock();
    try {
      return sequence;
    } finally {
      lock.unlock();
    }
  }

  /**
   * Takes the next number and the lane if both are free now.
   *
   * @return the number, or {@link #TAKEN} or {@link #STOPPED}
   */
  long tryEnter() {
    lock.lock();
    try {
      return tryTake();
    } finally {
      lock.unlock();
    }
  }

  /**
   * Waits for the lane and takes it with the next number.
   *
   * @return the number, or {@link #STOPPED}, or {@link #TAKEN} when the deadline comes first
   */
  long enter(long deadlineNanos) throws InterruptedException {
    lock.lock();
    try {
      while (true) {
        long number = tryTake();
        long left = deadlineNanos - System.nanoTime();
        if (number != TAKEN || left <= 0) {
          return number;
        }
        free.awaitNanos(left);
      }
    } finally {
      lock.unlock();
    }
  }

  private long tryTake() {
    if (stopped) {
      return STOPPED;
    }
    if (owner != null || !queue.isEmpty()) {
      return TAKEN;
    }
    owner = Thread.currentThread();
    return ++sequence;
  }

  /** Gives the lane back after {@link #tryEnter} or {@link #enter}. */
  void exit() {
    lock.lock();
    try {
      owner = null;
      signalNext();
    } finally {
      lock.unlock();
    }
  }

  private void signalNext() {
    if (!queue.isEmpty()) {
      work.signal();
    } else if (owner == null) {
      free.signalAll();
    }
  }

  /**
   * Issues an operation with the next number behind all others.
   *
   * @param issue is told the number; must not throw
   * @param hold whether it waits for {@link #release}
   * @return whether it is queued; false if the lane has stopped
   */
  boolean enqueue(GroupOperation op, LongConsumer issue, boolean hold) {
    lock.lock();
    try {
      if (stopped) {
        return false;
      }
      issue.accept(++sequence);
      queue.add(new Queued(op, hold ? Thread.currentThread() : null));
      if (worker == null) {
        worker = Thread.ofPlatform().daemon().name(threadName).start(this::work);
      } else {
        work.signal();
      }
      return true;
    } finally {
      lock.unlock();
    }
  }

  /** Lets an operation that was queued on hold have its turn. */
  void release(GroupOperation op) {
    lock.lock();
    try {
      for (Queued queued : queue) {
        if (queued.op == op) {
          queued.heldBy = null;
        }
      }
      work.signal();
    } finally {
      lock.unlock();
    }
  }

  /** Tells whether the lane waits for the calling thread, which so must not wait for the lane. */
  boolean waitsForThisThread() {
    lock.lock();
    try {
      Thread self = Thread.currentThread();
      boolean holds = self.equals(owner);
      for (Queued queued : queue) {
        holds |= self.equals(queued.heldBy);
      }
      return holds;
    } finally {
      lock.unlock();
    }
  }

  /**
   * Stops the lane as soon as nothing is queued and no other thread runs.
   *
   * @return whether it came to that before the deadline, or an interrupt
   */
  boolean stopWhenIdle(long deadlineNanos) {
    lock.lock();
    try {
      while (!queue.isEmpty() || !isFree()) {
        long left = deadlineNanos - System.nanoTime();
        if (left <= 0) {
          return false;
        }
        free.awaitNanos(left);
      }
      stopped = true;
      work.signal();
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    } finally {
      lock.unlock();
    }
  }

  /** Waits until no other thread runs; false when the deadline comes first. */
  boolean awaitFree(long deadlineNanos) {
    boolean interrupted = false;
    lock.lock();
    try {
      while (!isFree()) {
        long left = deadlineNanos - System.nanoTime();
        if (left <= 0) {
          return false;
        }
        try {
          free.awaitNanos(left);
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
      return true;
    } finally {
      lock.unlock();
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private boolean isFree() {
    return owner == null || owner.equals(Thread.currentThread());
  }

  /** Takes all queued operations out. */
  List<GroupOperation> drain() {
    lock.lock();
    try {
      List<GroupOperation> drained = new ArrayList<>(queue.size());
      queue.forEach(queued -> drained.add(queued.op));
      queue.clear();
      signalNext();
      return drained;
    } finally {
      lock.unlock();
    }
  }

  /** Takes no more operations, and takes the queued ones out. */
  List<GroupOperation> stop() {
    lock.lock();
    try {
      stopped = true;
      work.signal();
      free.signalAll();
      return drain();
    } finally {
      lock.unlock();
    }
  }

  private void work() {
    GroupOperation op = next();
    while (op != null) {
      runner.accept(op);
      exit();
      op = next();
    }
  }

  /** Waits for an operation and takes the lane for it; null when the worker shall end. */
  private @Nullable GroupOperation next() {
    lock.lock();
    try {
      while (true) {
        Queued first = queue.peek();
        if (first != null && owner == null && first.heldBy == null) {
          queue.remove();
          owner = Thread.currentThread();
          return first.op;
        }
        boolean rested = false;
        if (!stopped) {
          try {
            rested = work.awaitNanos(IDLE_NANOS) <= 0;
          } catch (InterruptedException e) {
            continue;
          }
        }
        if (queue.isEmpty() && (stopped || rested)) {
          worker = null;
          return null;
        }
      }
    } finally {
      lock.unlock();
    }
  }
}
