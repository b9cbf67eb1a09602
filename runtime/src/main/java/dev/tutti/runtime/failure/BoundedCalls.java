package dev.tutti.runtime.failure;

import dev.tutti.runtime.operation.Deadlines;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.FutureTask;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Puts a time limit on calls that have no deadline of their own, such as writes to a store that
 * hangs.
 */
public final class BoundedCalls {
  /*
   * Starting a thread takes longer than most of these calls, and each rank that closes makes two of
   * them, so threads are kept for a moment. Their number is not limited, so calls that hang do not
   * hold up others. Because a thread may serve any later caller, it is not in the thread group of
   * the caller that happened to start it; it has a caller's thread name and class loader only
   * during that caller's call.
   */
  static final String IDLE = "tutti-idle";

  private static final Executor THREADS =
      new ThreadPoolExecutor(
          0,
          Integer.MAX_VALUE,
          1,
          TimeUnit.SECONDS,
          new SynchronousQueue<>(),
          task ->
              Thread.ofPlatform()
                  .group(outermostGroup())
                  .daemon()
                  .name(IDLE)
                  .inheritInheritableThreadLocals(false)
                  .unstarted(task));

  private BoundedCalls() {}

  /**
   * Runs a call on another daemon thread and waits for it, even if interrupted. If the call takes
   * longer than the limit, it continues on its own.
   *
   * @param threadName the name of the thread during the call
   * @param limit the maximum time to wait
   * @param call the call to run
   * @throws TimeoutException if the call takes longer
   * @throws Exception if the call throws it
   */
  public static <T> T call(String threadName, Duration limit, Callable<T> call) throws Exception {
    ClassLoader loader = Thread.currentThread().getContextClassLoader();
    FutureTask<T> task = new FutureTask<>(call);
    long deadline = Deadlines.in(limit);
    THREADS.execute(() -> run(threadName, loader, task));
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

  private static void run(String name, ClassLoader loader, Runnable task) {
    Thread self = Thread.currentThread();
    self.setName(name);
    self.setContextClassLoader(loader);
    try {
      task.run();
    } finally {
      self.setContextClassLoader(null);
      self.setName(IDLE);
    }
  }

  private static ThreadGroup outermostGroup() {
    ThreadGroup group = Thread.currentThread().getThreadGroup();
    while (group.getParent() != null) {
      group = group.getParent();
    }
    return group;
  }
}
