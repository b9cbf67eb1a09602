package dev.tutti.gloo.transport;

import java.nio.channels.SelectionKey;

/** Handles the readiness of the channel whose selection key it is attached to. */
interface Handler {
  /** Reads, writes, accepts or connects, without blocking; the transport's lock is held. */
  void ready(SelectionKey key);
}
