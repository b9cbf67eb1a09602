package dev.tutti.cuda.nccl;

import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A guard for a blocking call until closed: a thread of its own checks for problems periodically,
 * and ends the call when it finds one or at the deadline.
 */
final class BlockingCallGuard implements AutoCloseable {
  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(200);

  private final long deadlineNanos;
  private final Runnable look;
  private final Runnable end;
  private boolean closed;
  private boolean late;
  private @Nullable RuntimeException found;

  /**
   * Starts the guard.
   *
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @param look called every 200 ms; throws to end the call
   * @param end ends the call
   */
  BlockingCallGuard(long deadlineNanos, Runnable look, Runnable end) {
    this.deadlineNanos = deadlineNanos;
    this.look = look;
    this.end = end;
    Thread _ = Thread.ofPlatform().daemon().name("tutti-nccl-guard").start(this::watch);
  }

  private void watch() {
    while (isNeeded()) {
      try {
        look.run();
      } catch (RuntimeException e) {
        find(e);
      } catch (Error e) {
        find(new IllegalStateException("the thread that watches this NCCL call failed: " + e, e));
      }
    }
  }

  /** Waits for one period; ends the call at the deadline. */
  private boolean isNeeded() {
    synchronized (this) {
      long now = System.nanoTime();
      long until = now + Math.min(LOOK_NANOS, deadlineNanos - now);
      while (!closed && until - now > 0) {
        try {
          TimeUnit.NANOSECONDS.timedWait(this, until - now);
        } catch (InterruptedException e) {
          throw new AssertionError("this thread is never interrupted", e);
        }
        now = System.nanoTime();
      }
      late = !closed && now - deadlineNanos >= 0;
      if (closed || !late) {
        return !closed;
      }
    }
    end.run();
    return false;
  }

  private void find(RuntimeException cause) {
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      found = cause;
    }
    end.run();
  }

  /** Returns whether the deadline ended the call. */
  synchronized boolean isLate() {
    return late;
  }

  /** Rethrows what the check threw, if that ended the call. */
  synchronized void throwFound() {
    if (found != null) {
      throw found;
    }
  }

  @Override
  public synchronized void close() {
    closed = true;
    notifyAll();
  }
}
