package dev.tutti.gloo.transport;

/** What a thread drives the connections for. */
interface Goal {
  /** Tells whether it is reached, or can never be any more; the transport's lock is held. */
  boolean reached();
}
