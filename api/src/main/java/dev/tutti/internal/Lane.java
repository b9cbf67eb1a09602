package dev.tutti.internal;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Runs the collectives of a group one at a time, in the order in which they were issued. */
final class Lane {
  /*
   * Under "lock": either nobody runs, or a caller runs inline, or the worker runs an
   * operation. A caller may go inline only when nobody runs and nothing is queued; else it queues
   * behind. Number and place in the order are given under the same lock, so that numbers follow the
   * order. The worker thread starts with the first operation that needs it and ends with the lane.
   */
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final ArrayDeque<GroupOperation> queue = new ArrayDeque<>();
  private final String threadName;
  private final Consumer<GroupOperation> runner;
  private boolean busy;
  private boolean stopped;
  private @Nullable Thread worker;
  private long sequence;

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

  /** Takes the next number and the lane if both are free now; 0 if somebody is before. */
  long tryEnter() {
    lock.lock();
    try {
      if (busy || !queue.isEmpty()) {
        return 0;
      }
      busy = true;
      return ++sequence;
    } finally {
      lock.unlock();
    }
  }

  /** Waits for the lane and takes it with the next number; 0 when the deadline comes first. */
  long enter(long deadlineNanos) {
    lock.lock();
    try {
      while (busy || !queue.isEmpty()) {
        long left = deadlineNanos - System.nanoTime();
        if (left <= 0 || changed.awaitNanos(left) <= 0) {
          return 0;
        }
      }
      busy = true;
      return ++sequence;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return 0;
    } finally {
      lock.unlock();
    }
  }

  /** Gives the lane back after {@link #tryEnter} or {@link #enter}. */
  void exit() {
    lock.lock();
    try {
      busy = false;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Issues an operation with the next number behind all others; false if the lane has stopped. */
  boolean enqueue(GroupOperation op, Consumer<Long> issue) {
    lock.lock();
    try {
      if (stopped) {
        return false;
      }
      issue.accept(++sequence);
      queue.add(op);
      if (worker == null) {
        worker = Thread.ofPlatform().daemon().name(threadName).start(this::work);
      }
      changed.signalAll();
      return true;
    } finally {
      lock.unlock();
    }
  }

  /** Waits until nothing runs and nothing is queued; false when the deadline comes first. */
  boolean awaitIdle(long deadlineNanos) {
    lock.lock();
    try {
      while (busy || !queue.isEmpty()) {
        long left = deadlineNanos - System.nanoTime();
        if (left <= 0) {
          return false;
        }
        changed.awaitNanos(left);
      }
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    } finally {
      lock.unlock();
    }
  }

  /** Takes all queued operations out. */
  List<GroupOperation> drain() {
    lock.lock();
    try {
      List<GroupOperation> drained = new ArrayList<>(queue);
      queue.clear();
      changed.signalAll();
      return drained;
    } finally {
      lock.unlock();
    }
  }

  /** Takes no more operations and lets the worker end after the current one. */
  void stop() {
    lock.lock();
    try {
      stopped = true;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  private void work() {
    while (true) {
      GroupOperation op;
      lock.lock();
      try {
        while (busy || queue.isEmpty()) {
          if (stopped && queue.isEmpty()) {
            return;
          }
          changed.await(1, TimeUnit.SECONDS);
        }
        op = queue.remove();
        busy = true;
      } catch (InterruptedException e) {
        continue;
      } finally {
        lock.unlock();
      }
      try {
        runner.accept(op);
      } finally {
        lock.lock();
        try {
          busy = false;
          changed.signalAll();
        } finally {
          lock.unlock();
        }
      }
    }
  }
}
