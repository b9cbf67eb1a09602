package dev.tutti.runtime.failure;

import dev.tutti.TuttiException;

/** The parts of a failing group that the handling of its failure needs. */
public interface FailingGroup {
  /** Tells whether the group is closed, so that no failure needs to be reported any more. */
  boolean isGone();

  /** Publishes where this rank stands for the other ranks; takes a second at most. */
  void publishProgress(boolean closed);

  /**
   * Waits until this rank has made the call that the others found not to match.
   *
   * @param limitNanos the deadline in terms of the group's clock
   */
  void awaitCall(FailureEvent event, long limitNanos);

  /** Ends everything once the failure is settled; does not block. */
  void tearDown(TuttiException cause);
}
