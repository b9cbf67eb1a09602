package dev.tutti.gloo.transport;

import java.nio.channels.SelectionKey;

/** Hears that the channel of the selection key it is attached to is ready. */
interface Handler {
  /** Reads, writes, accepts or connects, without blocking; the transport's lock is held. */
  void ready(SelectionKey key);
}
