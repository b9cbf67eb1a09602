package dev.tutti.cuda.share;

import dev.tutti.tls.TlsChannel;
import dev.tutti.tls.TlsSettings;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ByteChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/**
 * The connection from a peer. Its sender is unknown until the first note, which must contain the
 * token of this rank. Used by the thread of the links.
 */
final class IncomingLink {
  private static final int READ_BYTES = 1 << 13;
  private static final long TOKEN_NANOS = 10_000_000_000L;

  private final SocketChannel channel;
  private final @Nullable TlsChannel tls;
  private final ByteChannel wire;
  private final long token;
  private final int size;
  private final long tokenUntil = System.nanoTime() + TOKEN_NANOS;
  private final ByteBuffer buffer = ByteBuffer.allocate(READ_BYTES);
  private boolean secured;
  private int sender = -1;

  IncomingLink(SocketChannel channel, @Nullable SSLContext context, long token, int size) {
    TlsChannel made =
        context == null ? null : new TlsChannel(channel, TlsSettings.engine(context, true));
    this.channel = channel;
    this.tls = made;
    this.wire = made == null ? channel : made;
    this.secured = made == null;
    this.token = token;
    this.size = size;
  }

  /** Makes a selector report what there is to do, with this object as the key's attachment. */
  void select(Selector selector) throws IOException {
    // On an encrypted link, this end speaks first.
    int ops = tls == null ? SelectionKey.OP_READ : SelectionKey.OP_READ | SelectionKey.OP_WRITE;
    channel.register(selector, ops, this);
  }

  SocketChannel channel() {
    return channel;
  }

  /** Returns the rank at the other end, or -1 if it is not known yet. */
  int sender() {
    return sender;
  }

  /** Returns the nanoseconds left for the token to come, negative or 0 if it is late. */
  long nanosForToken() {
    return tokenUntil - System.nanoTime();
  }

  /**
   * Reads what is available; tells whether the connection continues.
   *
   * @throws SSLException if the link cannot be encrypted
   */
  boolean read(SelectionKey key, NoteReceiver receiver) throws SSLException {
    int count;
    do {
      count = readOnce(key, receiver);
    } while (count > 0 && tls != null && tls.hasBuffered());
    return count >= 0;
  }

  private int readOnce(SelectionKey key, NoteReceiver receiver) throws SSLException {
    int count;
    try {
      if (!secure(key)) {
        return 0;
      }
      count = wire.read(buffer);
    } catch (SSLException e) {
      throw e;
    } catch (IOException e) {
      count = -1;
    }
    return takeNotes(receiver) ? count : -1;
  }

  /** Continues the TLS handshake; tells whether it is complete, or not needed. */
  private boolean secure(SelectionKey key) throws IOException {
    if (!secured && tls != null) {
      secured = tls.handshake();
      key.interestOps(
          tls.hasUnsent() ? SelectionKey.OP_READ | SelectionKey.OP_WRITE : SelectionKey.OP_READ);
    }
    return secured;
  }

  /** Delivers the complete notes; returns false if the first one has not the token. */
  private boolean takeNotes(NoteReceiver receiver) {
    buffer.flip();
    while (buffer.remaining() >= OutgoingLink.NOTE_BYTES) {
      long kind = buffer.getLong();
      long a = buffer.getLong();
      long b = buffer.getLong();
      long c = buffer.getLong();
      if (sender >= 0) {
        receiver.take(sender, kind, a, b, c);
      } else if (kind == 0 && b == token && a >= 0 && a < size) {
        sender = (int) a;
      } else {
        return false;
      }
    }
    buffer.compact();
    return true;
  }
}
