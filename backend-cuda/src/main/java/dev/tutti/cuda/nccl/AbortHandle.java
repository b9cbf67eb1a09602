package dev.tutti.cuda.nccl;

import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;

/** A handle that ends blocking calls on a communicator. Thread-safe. */
final class AbortHandle {
  /*
   * NCCL starts a thread for each nonblocking call, which takes longer than the call itself. But
   * only a nonblocking initialization can be ended early. So initialization creates a communicator
   * with nonblocking calls, the handle, and splits from it another one with blocking calls. The two
   * share the flag that an abort sets: aborting the handle ends a blocking call on the other
   * communicator. The handle is used for nothing else, so aborting it needs no monitor. For a call
   * that a peer may keep from returning, a thread watches and aborts the handle at the deadline;
   * for all other calls, the group's watch does so through an abort.
   */
  private final LongConsumer abort;
  private final AtomicLong handle = new AtomicLong();
  private volatile boolean aborted;

  /**
   * Creates a handle that has no communicator yet.
   *
   * @param abort aborts a communicator
   */
  AbortHandle(LongConsumer abort) {
    this.abort = abort;
  }

  /** Sets the communicator to abort. */
  void set(long communicator) {
    handle.set(communicator);
  }

  /** Returns whether there is a communicator to abort. */
  boolean isSet() {
    return handle.get() != 0;
  }

  /**
   * Ends a blocking call in progress and all later ones; does nothing if no communicator is set.
   * Returns when the abort is over, even if another thread performs it; the shared resources can
   * then be freed.
   */
  synchronized void abortNow() {
    long own = take();
    if (own != 0) {
      aborted = true;
      abort.accept(own);
    }
  }

  /** Returns whether this handle ended calls, so that their communicator can no longer be used. */
  boolean hasAborted() {
    return aborted;
  }

  /** Releases the communicator to the caller, which must end it; returns 0 if there is none. */
  long take() {
    return handle.getAndSet(0);
  }

  /**
   * Starts a guard for a blocking call.
   *
   * @param deadlineNanos when to abort, in terms of {@link System#nanoTime()}
   * @param look called every 200 ms; throws to end the call
   */
  BlockingCallGuard guard(long deadlineNanos, Runnable look) {
    return new BlockingCallGuard(deadlineNanos, look, this::abortNow);
  }
}
