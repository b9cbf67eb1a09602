package dev.tutti.contracts;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.fail;

import dev.tutti.Store;
import dev.tutti.spi.Time;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.assertj.core.api.ThrowableAssertAlternative;

/** A runner of a test's calls on threads of their own, which it ends with the test. */
final class Calls implements AutoCloseable {
  private static final long LIMIT_SECONDS = 100;
  private static final long BLOCKED_MILLIS = 25;

  private final Time time;
  private final List<Thread> threads = new CopyOnWriteArrayList<>();
  private final List<Store> handles = new CopyOnWriteArrayList<>();

  /** Creates a runner in the time of this machine. */
  Calls() {
    this(Time.SYSTEM);
  }

  /**
   * Creates a runner.
   *
   * @param time what creates the threads, and by which waits for them end
   */
  Calls(Time time) {
    this.time = time;
  }

  /** A call whose end others await by a given time. */
  private static final class TimedCall<T> extends FutureTask<T> {
    private final Time time;
    private final Object lock = new Object();

    TimedCall(Callable<T> call, Time time) {
      super(call);
      this.time = time;
    }

    @Override
    protected void done() {
      synchronized (lock) {
        lock.notifyAll();
      }
    }

    @Override
    public T get(long timeout, TimeUnit unit)
        throws InterruptedException, ExecutionException, TimeoutException {
      long left = unit.toNanos(timeout);
      long deadline = time.nanoTime() + left;
      synchronized (lock) {
        while (left > 0 && !isDone()) {
          time.await(lock, left);
          left = deadline - time.nanoTime();
        }
      }
      if (!isDone()) {
        throw new TimeoutException();
      }
      return get();
    }
  }

  /** A call that may throw. */
  interface Action {
    void run() throws Exception;
  }

  /** A call that gets the number of its thread. */
  interface NumberedCall<T> {
    T run(int number) throws Exception;
  }

  /** Opens another handle, which is closed at the end of the test. */
  Store duplicate(Store store) {
    Store handle = store.duplicate();
    handles.add(handle);
    return handle;
  }

  <T> Future<T> start(Callable<T> call) {
    TimedCall<T> started = new TimedCall<>(call, time);
    threads.add(time.start("call", started));
    return started;
  }

  Future<?> run(Action call) {
    return start(callable(call));
  }

  /** Runs a call on several threads at once, waits for all of them, and returns their results. */
  <T> List<T> all(int count, NumberedCall<T> call) throws Exception {
    List<Future<T>> started = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      int number = i;
      started.add(start(() -> call.run(number)));
    }
    List<T> results = new ArrayList<>();
    for (Future<T> one : started) {
      results.add(ended(one));
    }
    return results;
  }

  /** Runs actions, each on a thread of its own, and waits for all of them. */
  static void runAll(List<Action> actions) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(actions.size());
    try {
      List<Future<?>> running = new ArrayList<>();
      for (Action action : actions) {
        running.add(threads.submit(callable(action)));
      }
      for (Future<?> one : running) {
        ended(one);
      }
    } finally {
      threads.shutdownNow();
    }
  }

  private static Callable<Void> callable(Action action) {
    return () -> {
      action.run();
      return null;
    };
  }

  /** Waits for a call that must succeed, and returns its result. */
  static <T> T ended(Future<T> call) throws Exception {
    try {
      return call.get(LIMIT_SECONDS, SECONDS);
    } catch (TimeoutException e) {
      throw new AssertionError("the call did not end within " + LIMIT_SECONDS + " s", e);
    } catch (ExecutionException e) {
      throw new AssertionError("the call failed: " + e.getCause(), e.getCause());
    }
  }

  /** Waits for a call that must fail with the given type. */
  static <E extends Throwable> ThrowableAssertAlternative<E> failed(
      Future<?> call, Class<E> expected) {
    return assertThatExceptionOfType(expected)
        .isThrownBy(
            () -> {
              try {
                call.get(LIMIT_SECONDS, SECONDS);
              } catch (ExecutionException e) {
                throw e.getCause();
              }
            });
  }

  /** Asserts that a call has not ended and does not end for a while. */
  static void assertBlocked(Future<?> call) {
    assertThatThrownBy(
            () -> {
              Object result = call.get(BLOCKED_MILLIS, MILLISECONDS);
              fail("the call should wait, but it returned " + result);
            })
        .isInstanceOf(TimeoutException.class);
  }

  @Override
  public void close() {
    threads.forEach(Thread::interrupt);
    RuntimeException failure = null;
    for (Store handle : handles) {
      try {
        handle.close();
      } catch (RuntimeException e) {
        failure = e;
      }
    }
    awaitThreads();
    if (failure != null) {
      throw failure;
    }
  }

  private void awaitThreads() {
    try {
      for (Thread thread : threads) {
        if (!time.join(thread, SECONDS.toNanos(LIMIT_SECONDS))) {
          throw new AssertionError("a call ignored the closing of its store and an interrupt");
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError("interrupted while calls were ending", e);
    }
  }
}
