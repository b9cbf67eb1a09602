package dev.tutti.fake.simulation;

import java.net.InetAddress;
import java.net.InetSocketAddress;

/** A port of a simulated host that a channel has, or had a moment ago. */
final class Binding {
  private final InetAddress local;
  private final int port;
  private final boolean reuse;
  private boolean listens;

  /** Until when the port stays in TIME_WAIT. */
  private long takenUntilNanos = Long.MAX_VALUE;

  Binding(InetAddress local, int port, boolean reuse) {
    this.local = local;
    this.port = port;
    this.reuse = reuse;
  }

  int port() {
    return port;
  }

  InetSocketAddress address() {
    return new InetSocketAddress(local, port);
  }

  boolean reuse() {
    return reuse;
  }

  void listen() {
    listens = true;
  }

  void freeAt(long nanos) {
    takenUntilNanos = nanos;
    listens = false;
  }

  boolean isFree(long nowNanos) {
    return nowNanos >= takenUntilNanos;
  }

  /** Returns whether connections to an address come here. */
  boolean covers(InetAddress address) {
    return local.isAnyLocalAddress() || local.equals(address);
  }

  /** Returns whether both can have the port at a time, as Linux decides. */
  boolean isBeside(Binding other) {
    boolean apart = !covers(other.local) && !other.covers(local);
    return apart || (reuse && other.reuse && !listens);
  }
}
