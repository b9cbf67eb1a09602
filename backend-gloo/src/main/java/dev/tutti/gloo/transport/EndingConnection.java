package dev.tutti.gloo.transport;

import dev.tutti.tls.TlsChannel;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ByteChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A connection on which a rank that leaves sends its last bytes, and which then stays open until
 * the peer ends it. All methods require the transport's lock.
 */
final class EndingConnection implements Handler {
  /*
   * A system answers bytes for a closed socket by a reset, and then no longer sends what is still
   * on its way to the peer. Such bytes may always come: a peer announces its receive before it
   * knows that the message is there. It ends the connection once it has read all, the farewell
   * included.
   */
  private static final int MOST_READS = 64;

  private final PairContext context;
  private final int peer;
  private final SocketChannel socket;
  private final @Nullable TlsChannel tls;
  private final ByteBuffer last;
  private final Set<EndingConnection> open;
  private long left;
  private boolean outputEnded;

  /**
   * Takes over a connection.
   *
   * @param last the bytes that are still to be sent
   * @param most how many bytes of the peer are discarded at most
   * @param open the connections of this kind, which this one joins until it is closed
   */
  EndingConnection(
      PairContext context,
      int peer,
      SocketChannel socket,
      @Nullable TlsChannel tls,
      ByteBuffer last,
      long most,
      Set<EndingConnection> open) {
    this.context = context;
    this.peer = peer;
    this.socket = socket;
    this.tls = tls;
    this.last = last;
    this.left = most;
    this.open = open;
  }

  /** Begins to end the connection. */
  void start(SelectionKey key) {
    open.add(this);
    if (key.isValid()) {
      key.attach(this);
      ready(key);
    } else {
      close();
    }
  }

  @Override
  public void ready(SelectionKey key) {
    try {
      boolean unsent = hasUnsent();
      if (discard()) {
        close();
      } else {
        key.interestOps(SelectionKey.OP_READ | (unsent ? SelectionKey.OP_WRITE : 0));
      }
    } catch (IOException e) {
      context.log.debug("connection to rank " + peer + " did not shut down cleanly", e);
      close();
    }
  }

  /** Sends the last bytes, and returns whether any are left. */
  private boolean hasUnsent() throws IOException {
    if (outputEnded) {
      return false;
    }
    TlsChannel secured = tls;
    ByteChannel stream = secured == null ? socket : secured;
    if (last.hasRemaining()) {
      stream.write(last);
    }
    if (secured != null && !last.hasRemaining()) {
      secured.close();
    }
    boolean unsent = last.hasRemaining() || (secured != null && secured.hasUnsent());
    if (!unsent) {
      outputEnded = true;
      socket.shutdownOutput();
    }
    return unsent;
  }

  /** Discards what the peer has sent, and returns whether it has ended the connection or must. */
  private boolean discard() throws IOException {
    int count = 1;
    for (int i = 0; count > 0 && i < MOST_READS; i++) {
      count = socket.read(context.in.clear());
      left -= Math.max(0, count);
    }
    return count < 0 || left <= 0;
  }

  void close() {
    open.remove(this);
    context.log.closeQuietly(socket, "connection to rank " + peer + " did not close cleanly");
  }
}
