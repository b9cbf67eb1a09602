package dev.tutti.gradients;

import java.util.concurrent.locks.ReentrantLock;

/**
 * A runner of a step's collectives on the threads that mark gradients, so that on a device the
 * current stream of these threads orders the collectives after the backward pass.
 */
final class InlineRunner implements StepRunner {
  private final StepSequence sequence;
  private final StepFailure failure;
  private final ReentrantLock lock = new ReentrantLock();

  InlineRunner(StepSequence sequence, StepFailure failure) {
    this.sequence = sequence;
    this.failure = failure;
  }

  @Override
  public void wake() {
    lock.lock();
    try {
      failure.check();
      sequence.advance();
    } finally {
      lock.unlock();
    }
  }

  @Override
  public void awaitDone() {
    wake();
  }

  @Override
  public boolean end() {
    return !lock.isLocked();
  }
}
