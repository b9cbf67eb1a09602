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

/** Bounds calls that have no deadline of their own, such as writes to a store that hangs. */
public final class BoundedCalls {
  /*
   * To start a thread takes longer than most of the calls, and each rank that closes makes two; so
   * threads are kept for a moment. There may be any number of them: calls that hang keep no other
   * from its turn. As they serve whoever calls next, they are not in the thread group of the caller
   * that happened to start them, and have its name and class loader only during its call.
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
   * Runs a call on another daemon thread and waits for it, also when interrupted. A call that takes
   * longer continues alone.
   *
   * @param threadName names the thread during the call
   * @param limit the longest wait
   * @param call what to run
   * @throws TimeoutException if it takes longer
   * @throws Exception what the call threw
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
