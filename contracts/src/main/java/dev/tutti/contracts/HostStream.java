package dev.tutti.contracts;

import dev.tutti.spi.DeviceEvent;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A stream of a simulated device, for tests of stream blocks without a device: tasks run one after
 * another on a thread of their own. Any thread may call any method.
 */
public final class HostStream implements AutoCloseable {
  private static final ThreadLocal<@Nullable HostStream> CURRENT = new ThreadLocal<>();

  private final ExecutorService thread =
      Executors.newSingleThreadExecutor(
          task -> Thread.ofPlatform().daemon().name("host-stream").unstarted(task));

  /** Creates an idle stream. */
  public HostStream() {}

  /**
   * Returns the stream that the calling thread made current.
   *
   * @throws IllegalStateException if there is none
   */
  public static HostStream current() {
    HostStream stream = CURRENT.get();
    if (stream == null) {
      throw new IllegalStateException(
          "thread "
              + Thread.currentThread().getName()
              + " has no current host stream; call makeCurrent() first");
    }
    return stream;
  }

  /** Makes this the current stream of the calling thread. */
  public void makeCurrent() {
    CURRENT.set(this);
  }

  /**
   * Runs a task after all earlier ones.
   *
   * @param task the task, which must not wait for a later one, and which is interrupted when the
   *     stream is closed
   * @throws IllegalStateException if the stream is closed
   */
  public void enqueue(Runnable task) {
    try {
      thread.execute(task);
    } catch (RejectedExecutionException e) {
      throw new IllegalStateException("the host stream is closed", e);
    }
  }

  /** Marks the point after all tasks enqueued so far. */
  public DeviceEvent record() {
    Event event = new Event();
    enqueue(event.reached::countDown);
    return event;
  }

  /**
   * Discards the tasks that have not started and interrupts the running one; further calls have no
   * effect.
   */
  @Override
  public void close() {
    thread.shutdownNow();
    if (CURRENT.get() == this) {
      CURRENT.remove();
    }
  }

  /** Returns whether the stream was closed and its thread has ended. */
  boolean hasEnded() {
    return thread.isTerminated();
  }

  private static final class Event implements DeviceEvent {
    private final CountDownLatch reached = new CountDownLatch(1);

    @Override
    public boolean isReached() {
      return reached.getCount() == 0;
    }

    @Override
    public void orderCurrentStream() {
      current()
          .enqueue(
              () -> {
                try {
                  reached.await();
                } catch (InterruptedException e) {
                  Thread.currentThread().interrupt();
                }
              });
    }

    @Override
    public boolean awaitReached(long deadlineNanos) {
      try {
        return reached.await(Math.max(0, deadlineNanos - System.nanoTime()), TimeUnit.NANOSECONDS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return isReached();
      }
    }
  }
}
