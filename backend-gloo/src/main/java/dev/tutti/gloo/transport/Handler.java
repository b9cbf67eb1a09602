package dev.tutti.gloo.transport;

import java.nio.channels.SelectionKey;

/** Is attached to a selection key and hears that its channel is ready. */
interface Handler {
  /** Reads, writes, accepts or connects, without blocking; the transport's lock is held. */
  void ready(SelectionKey key);
}
