package dev.tutti.store.tcp;

import dev.tutti.spi.HostPort;
import dev.tutti.spi.LimitedLog;
import dev.tutti.store.JobToken;
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

/** Holds what the server knows of one client; used by the event loop only. */
final class ServerConnection {
  /** The largest number of waits of one client at a time; PyTorch's clients have one. */
  static final int MAX_WAITS = 64;

  private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

  final SocketChannel channel;
  final SelectionKey key;
  final String peer;
  final String address;
  final ServerMemory.Client memory;
  final SendQueue replies;

  /** The channel, or what encrypts it. */
  final ByteChannel wire;

  final @Nullable TlsChannel tls;
  final TokenHandshake.Gate gate;
  final RequestReader requests;
  final List<Runnable> cancels = new ArrayList<>(1);

  /** What came and could not be handled yet. */
  ByteBuffer held = NOTHING;

  /** Tells that what is held has whole requests, which wait for room for their replies. */
  boolean paused;

  /** Tells that the client sends no more and waits for its last replies. */
  boolean ended;

  /** Tells that replies were added since the last flush. */
  boolean touched;

  /** Tells that the loop is to read what TLS has for it. */
  boolean queued;

  /** When replies got stuck, by {@link System#nanoTime()}; 0 while they do not. */
  long stuckSince;

  /** When the client came, by {@link System#nanoTime()}. */
  final long cameAt = System.nanoTime();

  /**
   * Why the client cannot be served any more, found while another one's request was carried out.
   */
  @Nullable Throwable broken;

  boolean closed;

  /** Tells that client and server have agreed on keys, or do not encrypt. */
  boolean secured;

  /** The clients that came before and after this one. */
  @Nullable ServerConnection older;

  @Nullable ServerConnection newer;

  /**
   * Creates one.
   *
   * @param memory counts what it takes
   */
  ServerConnection(
      SocketChannel channel,
      @Nullable TlsChannel tls,
      SelectionKey key,
      JobToken token,
      ServerMemory.Client memory)
      throws IOException {
    this.channel = channel;
    this.tls = tls;
    this.wire = tls == null ? channel : tls;
    this.secured = tls == null;
    this.key = key;
    this.memory = memory;
    this.peer = HostPort.text(channel.getRemoteAddress());
    this.address = LimitedLog.addressOf(channel);
    this.replies = new SendQueue(memory);
    this.gate = new TokenHandshake.Gate(token, replies);
    this.requests = new RequestReader(gate, memory);
  }

  /** Tells whether this may be anybody, who has proved nothing and not spoken the protocol. */
  boolean isStranger() {
    return !secured || !gate.isOpen() || !requests.isValidated();
  }

  /** Tells whether there is something to read that a selector does not know of. */
  boolean hasBuffered() {
    return tls != null && tls.hasBuffered();
  }

  /** Sends what TLS has left; tells whether that was all. */
  boolean flushTls() throws IOException {
    return tls == null || tls.flush();
  }

  /** Keeps what is left in a buffer for the next time. */
  void hold(ByteBuffer in) {
    memory.give(held.capacity());
    held = NOTHING;
    if (in.hasRemaining()) {
      memory.take(in.remaining());
      ByteBuffer copy = ByteBuffer.allocate(in.remaining()).order(ByteOrder.LITTLE_ENDIAN);
      held = copy.put(in).flip();
    }
  }

  /** Registers how to cancel a wait; throws if the client has too many. */
  void waiting(Runnable cancel) throws ProtocolException {
    if (cancels.size() == MAX_WAITS) {
      cancel.run();
      throw new ProtocolException("more than " + MAX_WAITS + " waits at a time");
    }
    cancels.add(cancel);
  }

  /** Cancels all waits; takes no memory. */
  void cancelWaits() {
    while (!cancels.isEmpty()) {
      cancels.removeLast().run();
    }
  }
}
