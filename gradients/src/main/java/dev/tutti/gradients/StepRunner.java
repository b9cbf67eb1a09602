package dev.tutti.gradients;

/** Runs the collectives of steps as their gradients come. */
interface StepRunner {
  /** Looks for what can be done; called after every mark that something may wait for. */
  void wake();

  /** Waits until the step is done or has failed. */
  void awaitDone();

  /** Ends; false if it is still in a collective, whose memory must stay. */
  boolean end();
}
