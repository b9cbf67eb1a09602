package dev.tutti.gradients;

/** A runner of a step's collectives as their gradients become ready. */
interface StepRunner {
  /** Checks what can be done; called after every mark that something may be waiting for. */
  void wake();

  /** Waits until the step is done or has failed. */
  void awaitDone();

  /**
   * Stops the runner; returns false if it is still in a collective, whose memory must not be freed.
   */
  boolean end();
}
