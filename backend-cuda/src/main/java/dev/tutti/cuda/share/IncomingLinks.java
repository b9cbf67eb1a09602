package dev.tutti.cuda.share;

import dev.tutti.store.JobToken;
import dev.tutti.store.net.LimitedLog;
import java.io.IOException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.concurrent.locks.LockSupport;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/**
 * The connections from peers. Anybody may connect, so those whose sender is unknown are limited in
 * number and time, and warnings about them are limited too. Used by the thread of the links.
 */
final class IncomingLinks {
  private static final long ACCEPT_PAUSE_NANOS = 10_000_000;
  private static final int MOST_UNKNOWN = 64;
  private static final long LOG_MILLIS = 1_000;

  private final int rank;
  private final int size;
  private final LinkListener listener;
  private final @Nullable SSLContext tls;
  private final JobToken token;
  private final LimitedLog log;

  /** The ranks that have a link to this one. */
  private final BitSet linked = new BitSet();

  /** The connections whose sender is unknown, the oldest first. */
  private final ArrayDeque<IncomingLink> unknown = new ArrayDeque<>();

  IncomingLinks(
      int rank,
      int size,
      LinkListener listener,
      @Nullable SSLContext tls,
      JobToken token,
      LimitedLog log) {
    this.rank = rank;
    this.size = size;
    this.listener = listener;
    this.tls = tls;
    this.token = token;
    this.log = log;
  }

  /** Accepts a connection; if that fails for lack of descriptors, the attempt is repeated soon. */
  void accept() throws IOException {
    SocketChannel channel;
    try {
      channel = listener.accept();
    } catch (ClosedChannelException e) {
      throw e;
    } catch (IOException e) {
      log.warn("accept", "", "rank %d: cannot accept links: %s".formatted(rank, e));
      dropFirst();
      LockSupport.parkNanos(ACCEPT_PAUSE_NANOS);
      return;
    }
    if (channel != null) {
      channel.configureBlocking(false);
      IncomingLink made =
          new IncomingLink(channel, tls, listener.address(), token, rank, size, this::admit);
      made.select(listener.selector());
      unknown.addLast(made);
      if (unknown.size() > size + MOST_UNKNOWN) {
        dropFirst();
      }
    }
  }

  /** Reads from a connection, and closes it when it has ended. */
  void read(IncomingLink from, SelectionKey key, NoteReceiver receiver) throws IOException {
    boolean wasUnknown = from.sender() < 0;
    boolean continues;
    try {
      continues = from.read(key, receiver);
    } catch (SSLException e) {
      log.warn(
          "TLS",
          LimitedLog.addressOf(from.channel()),
          "rank %d: closed a link that cannot be encrypted: %s".formatted(rank, e));
      continues = false;
    } catch (IncomingLink.RefusedException e) {
      log.warn(
          "link",
          LimitedLog.addressOf(from.channel()),
          "rank %d: closed a link that claimed to be from rank %d: %s"
              .formatted(rank, from.claimed(), e.getMessage()));
      continues = false;
    }
    if (wasUnknown && (from.sender() >= 0 || !continues)) {
      unknown.remove(from);
    }
    if (!continues) {
      key.cancel();
      from.channel().close();
      if (from.sender() >= 0) {
        linked.clear(from.sender());
        receiver.ended(from.sender());
      }
    }
  }

  /** Tells whether a rank may have a link: one at a time, or others could speak in its name. */
  private boolean admit(int sender) {
    boolean isFirst = !linked.get(sender);
    linked.set(sender);
    return isFirst;
  }

  /** Returns the number of milliseconds after which {@link #look} is due; 0 for never. */
  long millisToLook() {
    IncomingLink first = unknown.peekFirst();
    if (first == null) {
      return log.hasUntold() ? LOG_MILLIS : 0;
    }
    return Math.max(1, first.nanosForToken() / 1_000_000 + 1);
  }

  /** Closes connections that have not sent their token in time, and logs what is due. */
  void look() throws IOException {
    for (IncomingLink first = unknown.peekFirst();
        first != null && first.nanosForToken() <= 0;
        first = unknown.peekFirst()) {
      dropFirst();
    }
    log.tick();
  }

  /** Closes the oldest connection whose sender is unknown. */
  private void dropFirst() throws IOException {
    IncomingLink first = unknown.pollFirst();
    if (first != null) {
      first.channel().close();
    }
  }

  /** Logs what is left to log. The listener closes the connections. */
  void close() {
    log.close();
  }
}
