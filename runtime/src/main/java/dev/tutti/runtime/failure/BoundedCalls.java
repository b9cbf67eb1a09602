package dev.tutti.runtime.failure;

import dev.tutti.cpu.wait.Uninterrupted;
import dev.tutti.runtime.operation.PerTime;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Puts a time limit on calls that have no deadline of their own, such as writes to a store that
 * hangs.
 */
public final class BoundedCalls {
  /*
   * Starting a thread takes longer than most of these calls, and each rank that closes makes two of
   * them, so threads are kept for a moment; the one that ended last is used first. Their number is
   * not limited, so calls that hang do not hold up others. Because a thread may serve any later
   * caller, it inherits nothing of the caller that happened to start it; it has a caller's thread
   * name and class loader only during that caller's call. "idle" and the threads in it are
   * guarded by its own monitor.
   */
  static final String IDLE = "tutti-idle";

  private static final long KEEP_NANOS = 1_000_000_000;
  private static final PerTime<BoundedCalls> ALL = new PerTime<>(BoundedCalls::new);

  private final Time time;
  private final Deque<Worker> idle = new ArrayDeque<>();

  private BoundedCalls(Time time) {
    this.time = time;
  }

  /**
   * Runs a call on another daemon thread and waits for it, even if interrupted. If the call takes
   * longer than the limit, it continues on its own.
   *
   * @param time by which the caller waits
   * @param threadName the name of the thread during the call
   * @param limit the maximum time to wait
   * @param call the call to run
   * @throws TimeoutException if the call takes longer
   * @throws Exception if the call throws it
   */
  public static <T> T call(Time time, String threadName, Duration limit, Callable<T> call)
      throws Exception {
    return ALL.of(time).call(threadName, limit, call);
  }

  /** Runs a step in the same way. */
  public static void run(Time time, String threadName, Duration limit, Runnable step)
      throws Exception {
    boolean _ =
        call(
            time,
            threadName,
            limit,
            () -> {
              step.run();
              return true;
            });
  }

  private <T> T call(String threadName, Duration limit, Callable<T> call) throws Exception {
    ClassLoader loader = Thread.currentThread().getContextClassLoader();
    Thread caller = Thread.currentThread();
    FutureTask<T> task = new FutureTask<>(call);
    AtomicBoolean isOver = new AtomicBoolean();
    long deadline = time.deadline(limit);
    execute(
        () -> {
          try {
            run(threadName, loader, task);
          } finally {
            isOver.set(true);
            LockSupport.unpark(caller);
          }
        });
    try {
      while (!isOver.get()) {
        long left = deadline - time.nanoTime();
        if (left <= 0) {
          throw new TimeoutException();
        }
        Uninterrupted.park(time, task, left);
      }
      return task.get();
    } catch (ExecutionException e) {
      throw e.getCause() instanceof Exception cause ? cause : e;
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

  private void execute(Runnable task) {
    synchronized (idle) {
      Worker worker = idle.pollLast();
      if (worker != null) {
        worker.task = task;
        LockSupport.unpark(worker.thread);
        return;
      }
    }
    time.pooled(IDLE, new Worker(task)).start();
  }

  private final class Worker implements Runnable {
    private volatile @Nullable Runnable task;
    private @Nullable Thread thread;

    Worker(Runnable first) {
      task = first;
    }

    @Override
    public void run() {
      for (Runnable next = task; next != null; next = next()) {
        next.run();
      }
    }

    /** Waits for the next task; null if none came for a moment. */
    private @Nullable Runnable next() {
      long deadline = time.nanoTime() + KEEP_NANOS;
      synchronized (idle) {
        thread = Thread.currentThread();
        task = null;
        idle.addLast(this);
      }
      do {
        // A call may leave its thread interrupted, which does not concern the next one.
        boolean _ = Thread.interrupted();
        time.park(this, deadline - time.nanoTime());
      } while (task == null && deadline - time.nanoTime() > 0);
      synchronized (idle) {
        boolean _ = idle.remove(this);
        return task;
      }
    }
  }
}
