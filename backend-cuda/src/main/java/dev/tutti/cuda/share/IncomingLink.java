package dev.tutti.cuda.share;

import dev.tutti.store.JobToken;
import dev.tutti.store.net.TokenExchange;
import dev.tutti.tls.TlsChannel;
import dev.tutti.tls.TlsSettings;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ByteChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.function.IntPredicate;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/**
 * The connection from a peer. Its sender is unknown until the first note, which must contain the
 * number of this rank's socket, and, over a network, until it has proved the job's token. Used by
 * the thread of the links.
 */
final class IncomingLink {
  private static final int READ_BYTES = 1 << 13;
  private static final long TOKEN_NANOS = 10_000_000_000L;

  /** What a link claims to be whose first note is wrong. */
  private static final int NOBODY = -2;

  private final SocketChannel channel;
  private final @Nullable TlsChannel tls;
  private final ByteChannel wire;
  private final LinkAddress address;
  private final JobToken token;
  private final int rank;
  private final int size;
  private final IntPredicate admission;
  private final long tokenUntil = System.nanoTime() + TOKEN_NANOS;
  private final ByteBuffer buffer = ByteBuffer.allocate(READ_BYTES);
  private boolean secured;
  private @Nullable TokenExchange proof;
  private int claimed = -1;
  private int sender = -1;

  /** Thrown when a sender that knows the number of the socket is refused. */
  static final class RefusedException extends IOException {
    private static final long serialVersionUID = 1L;

    RefusedException(String message) {
      super(message);
    }
  }

  /**
   * Creates a link.
   *
   * @param channel the accepted connection
   * @param context encrypts the link; null for no encryption
   * @param address the address at which this rank accepts links
   * @param token the token that the sender must prove; there may be none
   * @param rank this rank
   * @param size the number of ranks
   * @param admission tells whether a rank that has proved itself may have a link
   */
  IncomingLink(
      SocketChannel channel,
      @Nullable SSLContext context,
      LinkAddress address,
      JobToken token,
      int rank,
      int size,
      IntPredicate admission) {
    TlsChannel made =
        context == null ? null : new TlsChannel(channel, TlsSettings.engine(context, true));
    this.channel = channel;
    this.tls = made;
    this.wire = made == null ? channel : made;
    this.secured = made == null;
    this.address = address;
    this.token = token;
    this.rank = rank;
    this.size = size;
    this.admission = admission;
    // What follows the first note may be for the proof.
    buffer.limit(OutgoingLink.NOTE_BYTES);
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

  /** Returns the rank that the other end claims to be, negative if it has not said so. */
  int claimed() {
    return claimed;
  }

  /** Returns the nanoseconds left for the token to come, negative or 0 if it is late. */
  long nanosForToken() {
    return tokenUntil - System.nanoTime();
  }

  /**
   * Reads what is available; tells whether the connection continues.
   *
   * @throws SSLException if the link cannot be encrypted
   * @throws RefusedException if the sender fails to prove the token, or has a link already
   */
  boolean read(SelectionKey key, NoteReceiver receiver) throws SSLException, RefusedException {
    int count;
    do {
      count = readOnce(key, receiver);
    } while (count > 0 && tls != null && tls.hasBuffered());
    return count >= 0;
  }

  private int readOnce(SelectionKey key, NoteReceiver receiver)
      throws SSLException, RefusedException {
    int count;
    try {
      if (!secure(key)) {
        return 0;
      }
      if (sender < 0 && !introduce(key)) {
        return claimed == NOBODY ? -1 : 0;
      }
      count = wire.read(buffer);
    } catch (SSLException | RefusedException e) {
      throw e;
    } catch (IOException e) {
      count = -1;
    }
    takeNotes(receiver);
    return count;
  }

  /** Continues the introduction of the sender; tells whether it is complete. */
  private boolean introduce(SelectionKey key) throws IOException {
    if (claimed < 0 && !readHello()) {
      return false;
    }
    TokenExchange exchange = proof;
    if (exchange != null) {
      boolean proved;
      try {
        boolean agreed = exchange.advance(wire);
        boolean sent = tls == null || tls.flush();
        proved = agreed && sent;
      } catch (SSLException e) {
        throw e;
      } catch (IOException e) {
        throw new RefusedException(
            e.getMessage()
                + "; "
                + JobToken.SETTING.name()
                + " must be the same for all ranks of a job");
      }
      boolean unsent = exchange.hasUnsent() || (tls != null && tls.hasUnsent());
      key.interestOps(SelectionKey.OP_READ | (unsent ? SelectionKey.OP_WRITE : 0));
      if (!proved) {
        return false;
      }
    }
    if (!admission.test(claimed)) {
      throw new RefusedException("that rank has a link already");
    }
    sender = claimed;
    return true;
  }

  /** Reads the first note; tells whether it has come, and from whom it claims to be. */
  private boolean readHello() throws IOException {
    if (wire.read(buffer) < 0) {
      throw new EOFException();
    }
    if (buffer.hasRemaining()) {
      return false;
    }
    buffer.flip();
    long kind = buffer.getLong();
    long from = buffer.getLong();
    long number = buffer.getLong();
    buffer.clear();
    if (kind != 0 || number != address.token() || from < 0 || from >= size) {
      claimed = NOBODY;
      return false;
    }
    claimed = (int) from;
    proof = address.proof(token, false, rank, claimed);
    return true;
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

  /** Delivers the complete notes. */
  private void takeNotes(NoteReceiver receiver) {
    buffer.flip();
    while (buffer.remaining() >= OutgoingLink.NOTE_BYTES) {
      long kind = buffer.getLong();
      long a = buffer.getLong();
      long b = buffer.getLong();
      long c = buffer.getLong();
      receiver.take(sender, kind, a, b, c);
    }
    buffer.compact();
  }
}
