package dev.tutti.store.tcp;

import dev.tutti.spi.HostPort;
import dev.tutti.spi.NanoClock;
import dev.tutti.store.JobToken;
import dev.tutti.store.net.LimitedLog;
import dev.tutti.store.table.ServerMemory;
import dev.tutti.tls.TlsChannel;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ByteChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The server's state of one client; used by the event loop only. */
final class ServerConnection {
  /** The maximum number of simultaneous waits of one client; PyTorch's clients have one. */
  static final int MAX_WAITS = 64;

  private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

  final SocketChannel channel;
  final SelectionKey key;
  final String peer;
  final String address;
  final ServerMemory.Client memory;
  final SendQueue replies;

  /** The channel, or the TLS channel that encrypts it. */
  final ByteChannel wire;

  final @Nullable TlsChannel tls;
  final TokenGate gate;
  final RequestReader requests;
  final List<Runnable> cancels = new ArrayList<>(1);

  /** The bytes that have come but could not be handled yet. */
  ByteBuffer held = NOTHING;

  /** Whether the held bytes contain whole requests, which wait for room for their replies. */
  boolean paused;

  /** The bytes with which the client asked the capability question; null if it did not. */
  byte @Nullable [] name;

  /** Whether the client sends no more and waits for its last replies. */
  boolean ended;

  /** Whether replies were added since the last flush. */
  boolean touched;

  /** Whether the loop is to continue its handshake, or to read what TLS has for it. */
  boolean queued;

  /** When replies got stuck, in terms of the server's clock; 0 while they are not stuck. */
  long stuckSince;

  /** When the client connected, in terms of the server's clock. */
  final long cameAt;

  /**
   * The reason why the client can no longer be served, found while another client's request was
   * executed.
   */
  @Nullable Throwable broken;

  boolean closed;

  /** Whether the TLS handshake with the client is complete, or the connection is not encrypted. */
  boolean secured;

  /** The clients that connected before and after this one. */
  @Nullable ServerConnection older;

  @Nullable ServerConnection newer;

  /**
   * Creates the state of a client.
   *
   * @param memory counts the memory of the client
   * @param clock the server's
   */
  ServerConnection(
      SocketChannel channel,
      @Nullable TlsChannel tls,
      SelectionKey key,
      JobToken token,
      ServerMemory.Client memory,
      NanoClock clock)
      throws IOException {
    this.channel = channel;
    this.tls = tls;
    this.wire = tls == null ? channel : tls;
    this.secured = tls == null;
    this.key = key;
    this.memory = memory;
    this.cameAt = clock.nanoTime();
    this.peer = HostPort.text(channel.getRemoteAddress());
    this.address = LimitedLog.addressOf(channel);
    this.replies = new SendQueue(memory);
    this.gate = new TokenGate(token, replies);
    this.requests = new RequestReader(gate, memory, replies);
  }

  /**
   * Returns whether this may be any process, because it has not proved the token or has not spoken
   * the protocol.
   */
  boolean isStranger() {
    return !secured || !gate.isOpen() || !requests.isValidated();
  }

  /** Continues the TLS handshake; returns whether it is complete. */
  boolean secure() throws IOException {
    TlsChannel handshaking = tls;
    secured = handshaking == null || handshaking.handshake();
    boolean unsent = !secured && handshaking != null && handshaking.hasUnsent();
    key.interestOps(unsent ? SelectionKey.OP_WRITE : SelectionKey.OP_READ);
    return secured;
  }

  /** Returns whether there is something to read that a selector does not see. */
  boolean hasBuffered() {
    return tls != null && tls.hasBuffered();
  }

  /** Sends what TLS has left to send; returns whether that was everything. */
  boolean flushTls() throws IOException {
    return tls == null || tls.flush();
  }

  /** Keeps the rest of a buffer for the next time. */
  void hold(ByteBuffer in) {
    memory.give(held.capacity());
    held = NOTHING;
    if (in.hasRemaining()) {
      memory.take(in.remaining());
      ByteBuffer copy = ByteBuffer.allocate(in.remaining()).order(ByteOrder.LITTLE_ENDIAN);
      held = copy.put(in).flip();
    }
  }

  /** Registers how to cancel a wait; throws if the client has too many waits. */
  void waiting(Runnable cancel) throws ProtocolException {
    if (cancels.size() == MAX_WAITS) {
      cancel.run();
      throw new ProtocolException("more than " + MAX_WAITS + " waits at a time");
    }
    cancels.add(cancel);
  }

  /** Cancels all waits; allocates no memory. */
  void cancelWaits() {
    while (!cancels.isEmpty()) {
      cancels.removeLast().run();
    }
  }
}
