package dev.tutti.cuda.nccl;

import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;

/** Ends calls that block in a communicator. Any thread. */
final class AbortHandle {
  /*
   * NCCL starts a thread for each call that does not block, which takes longer than the call. But only a
   * set-up that does not block can be ended. So the set-up makes a communicator whose calls do not block,
   * the handle, and of that another one whose calls do. The two share what an abort sets: to abort the
   * handle, which nobody uses for anything else and for which nobody needs a monitor, ends a call that
   * blocks in the other one. A thread watches a call that a peer may keep from returning, and aborts the
   * handle at the deadline; for all others the group's watch does, by an abort.
   */
  private final LongConsumer abort;
  private final AtomicLong handle = new AtomicLong();
  private volatile boolean aborted;

  /**
   * Creates a handle that does nothing yet.
   *
   * @param abort aborts a communicator
   */
  AbortHandle(LongConsumer abort) {
    this.abort = abort;
  }

  /** Takes over the communicator that is to be aborted. */
  void set(long communicator) {
    handle.set(communicator);
  }

  /** Tells whether there is a communicator to be aborted. */
  boolean isSet() {
    return handle.get() != 0;
  }

  /**
   * Ends a call that blocks, as all later ones; does nothing where it is not set. Returns when that
   * is over, also where another thread does it: what is shared can be freed then.
   */
  synchronized void abortNow() {
    long own = take();
    if (own != 0) {
      aborted = true;
      abort.accept(own);
    }
  }

  /** Tells whether it ended calls, so that nothing is to be expected of their communicator. */
  boolean hasAborted() {
    return aborted;
  }

  /** Gives the communicator away, which the caller has to end; 0 if there is none. */
  long take() {
    return handle.getAndSet(0);
  }

  /**
   * Watches over a call that blocks.
   *
   * @param deadlineNanos when to abort, in terms of {@link System#nanoTime()}
   * @param look is called each 200 ms, and throws to end the call
   */
  BlockingCallGuard guard(long deadlineNanos, Runnable look) {
    return new BlockingCallGuard(deadlineNanos, look, this::abortNow);
  }
}
