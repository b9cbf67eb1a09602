package dev.tutti.cuda.share;

import dev.tutti.store.JobToken;
import dev.tutti.store.net.SelfConnection;
import dev.tutti.store.net.TokenExchange;
import dev.tutti.tls.TlsChannel;
import dev.tutti.tls.TlsSettings;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ByteChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/**
 * The connection to a peer, with the notes that could not be written yet. Its first note names the
 * rank that connects and the number of the peer's socket. Over a network, both sides then prove the
 * job's token before any other note. Any thread may use it; nothing waits.
 */
final class OutgoingLink {
  /*
   * On encrypted links, the connecting rank plays the TLS server. So it knows its peer before a
   * note leaves, and nothing is sent to it after the handshake and the proof: it reads no more, and
   * unread bytes would turn a close into a reset, which would lose the last notes to the peer.
   */
  static final int NOTE_BYTES = 4 * Long.BYTES;

  private final int peer;
  private final SocketChannel channel;
  private final @Nullable TlsChannel tls;
  private final ByteBuffer hello;
  private final @Nullable TokenExchange proof;
  private boolean proved;
  private final ArrayDeque<ByteBuffer> waiting = new ArrayDeque<>();
  private boolean met;
  private boolean queued;
  private boolean hasNotes;

  private OutgoingLink(
      int peer,
      SocketChannel channel,
      @Nullable SSLContext context,
      ByteBuffer hello,
      @Nullable TokenExchange proof) {
    this.peer = peer;
    this.channel = channel;
    this.hello = hello;
    this.proof = proof;
    this.proved = proof == null;
    this.tls = context == null ? null : new TlsChannel(channel, TlsSettings.engine(context, false));
  }

  /** Starts to connect to a peer; encrypts the link if there is a context. */
  static OutgoingLink connect(
      int rank, int peer, LinkAddress address, @Nullable SSLContext context, JobToken token)
      throws IOException {
    boolean overNetwork = address.socket() instanceof InetSocketAddress;
    SocketChannel channel =
        overNetwork ? SocketChannel.open() : SocketChannel.open(StandardProtocolFamily.UNIX);
    return connect(rank, peer, address, context, token, channel);
  }

  /** Does the same with a new channel, which it closes if it fails. */
  static OutgoingLink connect(
      int rank,
      int peer,
      LinkAddress address,
      @Nullable SSLContext context,
      JobToken token,
      SocketChannel channel)
      throws IOException {
    try {
      channel.configureBlocking(false);
      if (address.socket() instanceof InetSocketAddress) {
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
      }
      boolean _ = channel.connect(address.socket());
      return new OutgoingLink(
          peer,
          channel,
          context,
          note(0, rank, address.token(), 0),
          address.proof(token, true, rank, peer));
    } catch (IOException e) {
      channel.close();
      throw e;
    }
  }

  private static ByteBuffer note(long kind, long a, long b, long c) {
    return ByteBuffer.allocate(NOTE_BYTES).putLong(kind).putLong(a).putLong(b).putLong(c).flip();
  }

  int peer() {
    return peer;
  }

  /** Adds a note to what is waiting. */
  synchronized void add(long kind, long a, long b, long c) {
    hasNotes = true;
    waiting.addLast(note(kind, a, b, c));
  }

  /** Tells whether any note was added. */
  synchronized boolean hasNotes() {
    return hasNotes;
  }

  /** Writes what is waiting, unless it is queued; tells whether the caller must queue it. */
  synchronized boolean mustBeQueued() throws IOException {
    boolean must = !queued && !flush();
    queued |= must;
    return must;
  }

  /**
   * Writes what is waiting; tells whether everything is written. If so, or if it throws, the
   * connection is no longer queued.
   */
  synchronized boolean flush() throws IOException {
    boolean blocked = false;
    try {
      blocked = !write();
      return !blocked;
    } finally {
      queued &= blocked;
    }
  }

  private boolean write() throws IOException {
    if (!channel.isConnected() && !channel.finishConnect()) {
      return false;
    }
    if (!met) {
      SelfConnection.refuse(channel);
      met = true;
    }
    if (tls != null && !tls.handshake()) {
      return false;
    }
    ByteChannel wire = tls == null ? channel : tls;
    if (!introduce(wire)) {
      return false;
    }
    while (!waiting.isEmpty()) {
      ByteBuffer first = waiting.getFirst();
      wire.write(first);
      if (first.hasRemaining()) {
        return false;
      }
      waiting.removeFirst();
    }
    return tls == null || tls.flush();
  }

  /** Continues the introduction; tells whether it is complete. */
  private boolean introduce(ByteChannel wire) throws IOException {
    if (hello.hasRemaining()) {
      wire.write(hello);
    }
    if (proof != null && !proved && !hello.hasRemaining()) {
      proved = proof.advance(wire);
    }
    if (tls != null && !proved) {
      boolean _ = tls.flush();
    }
    return proved && !hello.hasRemaining();
  }

  /** Makes a selector report when a connection that could not be flushed can continue. */
  void select(Selector selector) throws IOException {
    channel.register(selector, awaited());
  }

  private synchronized int awaited() {
    if (!channel.isConnected()) {
      return SelectionKey.OP_CONNECT;
    }
    if (tls != null) {
      return tls.hasUnsent() ? SelectionKey.OP_WRITE : SelectionKey.OP_READ;
    }
    boolean waits = !hello.hasRemaining() && proof != null && !proved && !proof.hasUnsent();
    return waits ? SelectionKey.OP_READ : SelectionKey.OP_WRITE;
  }

  /** Makes a selector report nothing more. */
  void deselect(Selector selector) {
    SelectionKey key = channel.keyFor(selector);
    if (key != null) {
      key.interestOps(0);
    }
  }

  void close() throws IOException {
    channel.close();
  }
}
