package dev.tutti.internal;

import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Bounds calls that have no deadline of their own, such as writes to a store that hangs. */
final class Bounded {
  private Bounded() {}

  /**
   * Runs a call on a daemon thread of its own and waits for it, also when interrupted. A call that
   * takes longer goes on alone.
   *
   * @param threadName names the thread
   * @param limit the longest wait
   * @param call what to run
   * @throws TimeoutException if it takes longer
   * @throws Exception what the call threw
   */
  static <T> T call(String threadName, Duration limit, Callable<T> call) throws Exception {
    FutureTask<T> task = new FutureTask<>(call);
    Thread.ofPlatform().daemon().name(threadName).start(task);
    long deadline = Deadlines.in(limit);
    boolean interrupted = false;
    try {
      while (true) {
        try {
          return task.get(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } catch (ExecutionException e) {
      throw e.getCause() instanceof Exception cause ? cause : e;
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
