package dev.tutti.gradients;

import dev.tutti.gradients.thread.Threads;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/** A runner of a step's collectives on a thread of its own, concurrently with the backward pass. */
final class CommunicationThread implements StepRunner {
  /*
   * Both threads sleep in park, which allocates nothing. Before it parks, each thread checks for
   * what the other one writes before unparking it; the waiter does so after announcing itself. An
   * unpark that comes first makes the next park return at once.
   */
  private final StepSequence sequence;
  private final StepFailure failure;
  private final Thread thread;
  private volatile @Nullable Thread waiter;
  private volatile boolean closing;

  CommunicationThread(String name, StepSequence sequence, StepFailure failure) {
    this.sequence = sequence;
    this.failure = failure;
    this.thread = Thread.ofPlatform().daemon().name(name).unstarted(this::run);
    thread.start();
  }

  private void run() {
    try {
      while (!closing && !failure.isThere()) {
        sequence.advance();
        if (sequence.isDone()) {
          LockSupport.unpark(waiter);
        }
        LockSupport.park(this);
      }
    } catch (GradientException e) {
      // It is the reducer's failure, which each of its methods throws.
    } finally {
      LockSupport.unpark(waiter);
    }
  }

  @Override
  public void wake() {
    LockSupport.unpark(thread);
  }

  @Override
  public void awaitDone() {
    boolean interrupted = false;
    waiter = Thread.currentThread();
    while (!sequence.isDone() && !failure.isThere() && thread.isAlive()) {
      LockSupport.park(this);
      interrupted |= Thread.interrupted();
    }
    waiter = null;
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  @Override
  public boolean end() {
    closing = true;
    LockSupport.unpark(thread);
    if (thread.equals(Thread.currentThread())) {
      return false;
    }
    Threads.join(thread);
    LockSupport.unpark(waiter);
    return !thread.isAlive();
  }
}
