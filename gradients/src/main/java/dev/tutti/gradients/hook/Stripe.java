package dev.tutti.gradients.hook;

import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gradients.thread.Threads;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/** A part of each bucket, which a group of its own reduces on a thread of its own. */
final class Stripe implements AutoCloseable {
  /*
   * The thread that begins a part writes what the part is, and then "busy". The stripe's thread
   * writes the failure, and then "busy". The flag is volatile, and each side checks again after it
   * is unparked. Park allocates nothing.
   */
  private final ProcessGroup group;
  private final Thread thread;
  private @Nullable Tensor part;
  private ReduceOp mean = ReduceOp.AVG;
  private @Nullable Throwable failure;
  private volatile boolean busy;
  private volatile boolean closed;
  private volatile @Nullable Thread waiter;

  /**
   * Starts the thread.
   *
   * @param group the group, which is closed with the stripe
   * @param index the index among the stripes of a bucket, starting at 1
   */
  Stripe(ProcessGroup group, int index) {
    this.group = group;
    this.thread =
        Thread.ofPlatform()
            .daemon()
            .name("tutti-stripe-" + group.rank() + "-" + index)
            .start(this::run);
  }

  private void run() {
    while (!closed) {
      if (busy) {
        reduce();
        busy = false;
        LockSupport.unpark(waiter);
      } else {
        LockSupport.park(this);
      }
    }
  }

  private void reduce() {
    try {
      if (part != null) {
        group.allReduce(part, mean);
      }
    } catch (RuntimeException | Error e) {
      failure = e;
    }
  }

  /** Lets the thread reduce a part. */
  void begin(Tensor next, ReduceOp newMean) {
    part = next;
    mean = newMean;
    waiter = Thread.currentThread();
    busy = true;
    LockSupport.unpark(thread);
  }

  /** Waits until the part is reduced, and returns its failure, if any. */
  @Nullable Throwable await() {
    boolean interrupted = false;
    while (busy) {
      LockSupport.park(this);
      interrupted |= Thread.interrupted();
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    Throwable ended = failure;
    failure = null;
    return ended;
  }

  /** Ends the reduction of the thread, here and on the other ranks. */
  void abort(Throwable cause) {
    if (group.failure().isEmpty() && !group.isClosed()) {
      group.abort("another stripe failed: " + cause);
    }
  }

  @Override
  public void close() {
    closed = true;
    LockSupport.unpark(thread);
    group.close();
    Threads.join(thread);
  }
}
