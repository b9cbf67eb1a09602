package dev.tutti.gloo.transport;

import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Queues the threads that wait while another thread drives. All methods require the transport's
 * lock.
 */
final class Followers {
  private @Nullable Thread[] threads = new @Nullable Thread[4];
  private @Nullable Goal[] goals = new @Nullable Goal[4];
  private int count;

  void add(Thread thread, Goal goal) {
    if (count == threads.length) {
      threads = Arrays.copyOf(threads, count * 2);
      goals = Arrays.copyOf(goals, count * 2);
    }
    threads[count] = thread;
    goals[count++] = goal;
  }

  @SuppressWarnings("ReferenceEquality") // a thread is itself and no other
  void remove(Thread thread) {
    int at = 0;
    while (threads[at] != thread) {
      at++;
    }
    count--;
    System.arraycopy(threads, at + 1, threads, at, count - at);
    System.arraycopy(goals, at + 1, goals, at, count - at);
    threads[count] = null;
    goals[count] = null;
  }

  /** Wakes the thread that has waited longest. */
  void wakeFirst() {
    if (count > 0) {
      LockSupport.unpark(threads[0]);
    }
  }

  /** Wakes the threads whose goals are reached. */
  void wakeReached() {
    for (int i = 0; i < count; i++) {
      Goal goal = goals[i];
      if (goal != null && goal.reached()) {
        LockSupport.unpark(threads[i]);
      }
    }
  }

  void wakeAll() {
    for (int i = 0; i < count; i++) {
      LockSupport.unpark(threads[i]);
    }
  }
}
