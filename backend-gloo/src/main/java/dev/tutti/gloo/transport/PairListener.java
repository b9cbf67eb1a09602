package dev.tutti.gloo.transport;

import dev.tutti.spi.PeerLostException;

/** What a pair needs of the others of its transport. All methods require the transport's lock. */
interface PairListener {
  /** Starts connecting a pair, unless that has already begun. */
  void wants(int peer);

  /**
   * Ends everything in progress and notifies the group.
   *
   * @param failure the exception that current and future waits throw
   * @param blamed the rank to blame, or -1
   */
  void fatal(Throwable failure, int blamed);

  /** Called when a peer has violated the protocol. */
  void broke(int peer, PeerLostException breach, boolean wasBusy);

  /** Called when a peer has closed its connection. */
  void closed(int peer, PeerLostException loss);

  /**
   * Called when a Tutti rank leaves.
   *
   * @param reason {@link Header#CLEAN}, {@link Header#UNKNOWN}, the rank that the peer lost, or the
   *     peer itself if it failed on its own
   */
  void farewell(int peer, long reason);

  /** Notifies users of ended requests, and the group of a failure. Releases the lock meanwhile. */
  boolean deliver();
}
