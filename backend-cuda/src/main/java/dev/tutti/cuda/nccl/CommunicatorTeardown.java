package dev.tutti.cuda.nccl;

import java.lang.System.Logger.Level;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The end of a communicator: an abort or a close, whichever begins first. It runs on a thread of
 * its own, because NCCL may hang in it. Thread-safe.
 */
final class CommunicatorTeardown {
  private static final System.Logger LOG = System.getLogger(CommunicatorTeardown.class.getName());

  private final String name;
  private final Runnable abort;
  private final Runnable close;
  private volatile @Nullable Throwable cause;
  private @Nullable Thread thread;

  /**
   * Creates a teardown that has not begun.
   *
   * @param name the name of the communicator, for messages
   * @param abort ends running operations and frees the communicator
   * @param close frees the communicator, in which nothing may be running
   */
  CommunicatorTeardown(String name, Runnable abort, Runnable close) {
    this.name = name;
    this.abort = abort;
    this.close = close;
  }

  /** Begins an abort, unless the teardown has begun. */
  synchronized void abort(Throwable newCause) {
    if (thread == null) {
      cause = newCause;
      thread = Thread.ofPlatform().daemon().name("tutti-nccl-abort").start(abort);
    }
  }

  /** Returns the cause of the abort, or null if there was none. */
  @Nullable Throwable cause() {
    return cause;
  }

  /** Begins a close, unless the teardown has begun; returns the thread that performs it. */
  synchronized Thread close() {
    Thread begun = thread;
    if (begun == null) {
      begun = Thread.ofPlatform().daemon().name("tutti-nccl-close").start(close);
      thread = begun;
    }
    return begun;
  }

  /**
   * Waits for the teardown, beginning a close if it has not begun; an interrupt ends the wait, and
   * the interrupt status is kept.
   */
  void await(long deadlineNanos) {
    Thread begun = close();
    boolean interrupted = Thread.interrupted();
    try {
      long left = Math.max(0, deadlineNanos - System.nanoTime());
      if (!begun.join(Duration.ofNanos(left))) {
        LOG.log(Level.WARNING, "{0}: NCCL did not shut down its communicator in time", name);
      }
    } catch (InterruptedException e) {
      interrupted = true;
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
