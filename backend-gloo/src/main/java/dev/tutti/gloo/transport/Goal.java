package dev.tutti.gloo.transport;

/** The goal for which a thread drives the connections. */
interface Goal {
  /**
   * Returns whether the goal has been reached, or can no longer be reached; the transport's lock is
   * held.
   */
  boolean reached();
}
