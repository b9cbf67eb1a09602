package dev.tutti.cuda.nccl;

import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The end of a communicator: an abort or a close, whichever begins first. It runs on a thread of
 * its own, because NCCL may hang in it: among other things, it keeps a communicator until each rank
 * on the same host that is another process has ended its own. Thread-safe.
 */
final class CommunicatorTeardown {
  private static final System.Logger LOG = System.getLogger(CommunicatorTeardown.class.getName());

  /** How long a rank whose data has left waits for peers to close, too. */
  private static final long PEERS_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final String name;
  private final Runnable abort;
  private final Runnable close;
  private final CountDownLatch flushed = new CountDownLatch(1);
  private volatile long flushedNanos;
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
      thread = Thread.ofPlatform().daemon().name("tutti-nccl-abort").start(() -> run(abort));
    }
  }

  private void run(Runnable end) {
    try {
      end.run();
    } finally {
      flushed();
    }
  }

  /** Notes that all data of this rank has left; only peers can hold up the rest of the close. */
  void flushed() {
    flushedNanos = System.nanoTime();
    flushed.countDown();
  }

  /** Returns the cause of the abort, or null if there was none. */
  @Nullable Throwable cause() {
    return cause;
  }

  /** Begins a close, unless the teardown has begun; returns the thread that performs it. */
  synchronized Thread close() {
    Thread begun = thread;
    if (begun == null) {
      begun = Thread.ofPlatform().daemon().name("tutti-nccl-close").start(() -> run(close));
      thread = begun;
    }
    return begun;
  }

  /**
   * Waits for the teardown, beginning a close if it has not begun. The wait ends a second after all
   * data has left; the thread then frees the communicator when the peers have ended theirs. An
   * interrupt ends the wait, and the interrupt status is kept.
   */
  void await(long deadlineNanos) {
    Thread begun = close();
    boolean interrupted = Thread.interrupted();
    try {
      if (!flushed.await(deadlineNanos - System.nanoTime(), TimeUnit.NANOSECONDS)) {
        LOG.log(Level.WARNING, "{0}: NCCL did not shut down its communicator in time", name);
      } else if (!begun.join(Duration.ofNanos(flushedNanos + PEERS_NANOS - System.nanoTime()))) {
        LOG.log(Level.DEBUG, "{0}: NCCL keeps its communicator until the peers close, too", name);
      }
    } catch (InterruptedException e) {
      interrupted = true;
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
