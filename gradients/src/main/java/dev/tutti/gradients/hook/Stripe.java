package dev.tutti.gradients.hook;

import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gradients.thread.Threads;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/** Reduces a part of each bucket, by a group and on a thread of its own. */
final class Stripe implements AutoCloseable {
  /*
   * Whoever begins a part writes what it is, and then "busy"; the thread writes the failure, and then
   * "busy". Both are volatile, and each side looks again after it was unparked. Park allocates
   * nothing.
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
   * @param group closed with the stripe
   * @param index among the stripes of a bucket, from 1
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

  /** Has the thread reduce a part. */
  void begin(Tensor next, ReduceOp newMean) {
    part = next;
    mean = newMean;
    waiter = Thread.currentThread();
    busy = true;
    LockSupport.unpark(thread);
  }

  /** Waits until the part is reduced; returns what it failed with. */
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

  /** Ends what the thread reduces, here and on the other ranks. */
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
