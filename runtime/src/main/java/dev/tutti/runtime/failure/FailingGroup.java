package dev.tutti.runtime.failure;

import dev.tutti.TuttiException;

/** Says what a failure needs of the group that fails. */
public interface FailingGroup {
  /** Tells whether it is closed, and nobody is left to hear of a failure. */
  boolean isGone();

  /** Lets the other ranks know where this one stands; takes a second at most. */
  void publishProgress(boolean closed);

  /**
   * Waits until this rank made the call in which the others found that it does not fit.
   *
   * @param limitNanos in terms of {@link System#nanoTime()}
   */
  void awaitCall(FailureEvent event, long limitNanos);

  /** Ends everything, after the failure was settled; does not block. */
  void tearDown(TuttiException cause);
}
