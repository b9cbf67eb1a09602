package dev.tutti.cuda.share;

import dev.tutti.BackendException;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.spi.PeerLostException;
import dev.tutti.store.net.LimitedLog;
import dev.tutti.tls.TlsChannel;
import dev.tutti.tls.TlsSettings;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ByteChannel;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayDeque;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/**
 * Links that carry notes of four numbers between ranks on one host or several, in the order of each
 * sender. Any thread may send, and sending never waits; a thread of the links delivers the received
 * notes.
 *
 * <p>A rank listens on a socket. A rank that has a note for it connects to it; in addition, each
 * rank connects at once to the next {@value #WATCHERS} ranks. As with {@link IpcChannel}, a rank
 * accepts notes only from senders that know its token, and so can read the store. Over TCP the
 * links may be encrypted.
 */
public final class RankLinks implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger(RankLinks.class.getName());
  private static final SecureRandom RANDOM = new SecureRandom();
  private static final int READ_BYTES = 1 << 13;
  private static final long JOIN_MILLIS = 5_000;
  private static final long FLUSH_NANOS = 1_000_000_000;
  private static final long PARK_NANOS = 100_000;
  private static final long TOKEN_NANOS = 10_000_000_000L;
  private static final long ACCEPT_PAUSE_NANOS = 10_000_000;
  private static final int MOST_UNKNOWN = 64;
  private static final long LOG_MILLIS = 1_000;

  /**
   * The number of ranks to which a rank connects before it has a note: these notice from the end of
   * the connection that the rank died.
   */
  private static final int WATCHERS = 15;

  private final int rank;
  private final LinkListener listener;
  private final @Nullable SSLContext tls;
  private final OutgoingLinks outgoing;
  private final int size;
  private final ArrayDeque<Incoming> unknown = new ArrayDeque<>();
  private final LimitedLog log = new LimitedLog(LOG);
  private volatile @Nullable Thread thread;
  private volatile boolean closed;

  /** A supplier of an address of this host. */
  @FunctionalInterface
  public interface Local {
    /**
     * Returns the address.
     *
     * @throws IOException if there is no such address
     */
    InetAddress address() throws IOException;
  }

  /** Supplies the address of the socket at which this rank listens. */
  private interface Place {
    SocketAddress address() throws IOException;
  }

  /** The connection from a peer. */
  private static final class Incoming {
    final SocketChannel channel;
    final long tokenUntil = System.nanoTime() + TOKEN_NANOS;
    final ByteBuffer buffer = ByteBuffer.allocate(READ_BYTES);
    private final @Nullable TlsChannel tls;
    final ByteChannel wire;
    private boolean secured;
    int sender = -1;

    Incoming(SocketChannel channel, @Nullable SSLContext context) {
      this.channel = channel;
      TlsChannel made =
          context == null ? null : new TlsChannel(channel, TlsSettings.engine(context, true));
      this.tls = made;
      this.wire = made == null ? channel : made;
      this.secured = made == null;
    }

    /** Continues the TLS handshake; tells whether it is complete, or not needed. */
    boolean secure(SelectionKey key) throws IOException {
      TlsChannel handshaking = tls;
      if (!secured && handshaking != null) {
        secured = handshaking.handshake();
        key.interestOps(
            handshaking.hasUnsent()
                ? SelectionKey.OP_READ | SelectionKey.OP_WRITE
                : SelectionKey.OP_READ);
      }
      return secured;
    }

    /** Tells whether there is data to read that a selector does not know about. */
    boolean hasBuffered() {
      return tls != null && tls.hasBuffered();
    }
  }

  private RankLinks(
      int rank, LinkListener listener, List<LinkAddress> peers, @Nullable SSLContext tls) {
    this.rank = rank;
    this.listener = listener;
    this.tls = tls;
    this.outgoing = new OutgoingLinks(rank, peers, tls, listener.selector());
    this.size = peers.size();
  }

  /**
   * Opens the links between all ranks on a host; all ranks must call this together.
   *
   * @param directory a directory in which sockets can be created, the same on all ranks
   * @param exchange the group's exchange
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @throws BackendException on all ranks, if any of them cannot create its socket
   */
  public static RankLinks open(Path directory, StoreExchange exchange, long deadlineNanos) {
    String name = "tutti-" + exchange.rank() + "-" + HexFormat.of().toHexDigits(RANDOM.nextLong());
    Path path = directory.resolve(name);
    return open(
        exchange, deadlineNanos, null, path.toString(), () -> UnixDomainSocketAddress.of(path));
  }

  /**
   * Opens links between ranks on any hosts, over TCP; all ranks must call this together.
   *
   * @param local supplies the address at which this rank listens, on a free port
   * @param tls encrypts the links, with certificates at both ends; null for no encryption
   * @param exchange the group's exchange
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @throws BackendException on all ranks, if any of them cannot create its socket, or not all of
   *     them encrypt
   */
  public static RankLinks open(
      Local local, @Nullable SSLContext tls, StoreExchange exchange, long deadlineNanos) {
    return open(
        exchange, deadlineNanos, tls, "for TCP", () -> new InetSocketAddress(local.address(), 0));
  }

  private static RankLinks open(
      StoreExchange exchange,
      long deadlineNanos,
      @Nullable SSLContext tls,
      String where,
      Place own) {
    int rank = exchange.rank();
    LinkListener listener;
    try {
      listener = new LinkListener(own.address(), tls != null, RANDOM.nextLong());
    } catch (IOException | RuntimeException e) {
      String reason =
          "rank " + rank + ": cannot create the socket " + where + ": " + e.getMessage();
      LinkAddress.refuse(reason, exchange, deadlineNanos);
      throw new BackendException(reason);
    }
    try {
      List<LinkAddress> peers = listener.address().exchange(exchange, deadlineNanos);
      return new RankLinks(rank, listener, peers, tls);
    } catch (RuntimeException | Error e) {
      try {
        listener.close();
      } catch (IOException suppressed) {
        e.addSuppressed(suppressed);
      }
      throw e;
    }
  }

  /** Starts delivering received notes; further calls have no effect. */
  public synchronized void listen(NoteReceiver receiver) {
    if (thread == null && !closed) {
      thread = Thread.ofPlatform().daemon().name("tutti-cuda-" + rank).start(() -> run(receiver));
      for (int i = 1; i <= Math.min(size - 1, WATCHERS); i++) {
        watchedBy((rank + i) % size);
      }
    }
  }

  /**
   * Connects to a peer, so that the peer notices when this rank dies. A failure is not reported
   * before the first note: the peer may simply have come and gone.
   */
  private void watchedBy(int peer) {
    try {
      outgoing.connect(peer);
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "rank {0}: no link to rank {1} yet: {2}", rank, peer, e);
    }
  }

  /**
   * Sends a note.
   *
   * @param peer the receiving rank
   * @param kind the first number, not 0
   * @param a the second number
   * @param b the third number
   * @param c the fourth number
   * @throws PeerLostException if the peer no longer listens
   */
  public void send(int peer, long kind, long a, long b, long c) {
    outgoing.send(peer, kind, a, b, c);
  }

  private void run(NoteReceiver receiver) {
    try {
      while (!closed) {
        listener.selector().select(millisToLook());
        outgoing.flushBlocked(receiver);
        for (SelectionKey key : listener.selector().selectedKeys()) {
          if (!key.isValid()) {
            continue; // A flush closed it.
          }
          if (key.isAcceptable()) {
            accept();
          } else if (key.isReadable() || key.isWritable()) {
            read(key, receiver);
          }
        }
        dropSilent();
        log.tick();
        listener.selector().selectedKeys().clear();
      }
    } catch (IOException e) {
      if (!closed) {
        receiver.fail(e, -1);
      }
    } catch (ClosedSelectorException e) {
      // Closed meanwhile.
    } catch (RuntimeException | Error e) {
      receiver.fail(
          new IOException("the thread that receives from other ranks failed: " + e, e), -1);
    }
  }

  /** Accepts a connection; if that fails for lack of descriptors, the attempt is repeated soon. */
  private void accept() throws IOException {
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
      Incoming made = new Incoming(channel, tls);
      // On an encrypted link, this end speaks first.
      int ops = tls == null ? SelectionKey.OP_READ : SelectionKey.OP_READ | SelectionKey.OP_WRITE;
      channel.register(listener.selector(), ops, made);
      unknown.addLast(made);
      if (unknown.size() > size + MOST_UNKNOWN) {
        dropFirst();
      }
    }
  }

  /** Closes the oldest connection whose peer is not known yet. */
  private void dropFirst() throws IOException {
    Incoming first = unknown.pollFirst();
    if (first != null) {
      first.channel.close();
    }
  }

  /**
   * Returns the number of milliseconds after which to check for late tokens or to log; 0 for never.
   */
  private long millisToLook() {
    Incoming first = unknown.peekFirst();
    if (first == null) {
      return log.hasUntold() ? LOG_MILLIS : 0;
    }
    return Math.max(1, (first.tokenUntil - System.nanoTime()) / 1_000_000 + 1);
  }

  /** Closes connections that have not sent their token in time. */
  private void dropSilent() throws IOException {
    for (Incoming first = unknown.peekFirst();
        first != null && System.nanoTime() - first.tokenUntil >= 0;
        first = unknown.peekFirst()) {
      dropFirst();
    }
  }

  private void read(SelectionKey key, NoteReceiver receiver) throws IOException {
    Incoming from = (Incoming) key.attachment();
    if (from == null) {
      return;
    }
    int count;
    do {
      count = readOnce(from, key, receiver);
    } while (count > 0 && from.hasBuffered());
    if (count < 0) {
      unknown.remove(from);
      key.cancel();
      from.channel.close();
      if (from.sender >= 0) {
        receiver.ended(from.sender);
      }
    }
  }

  /** Reads what is available; returns a negative number when the connection has ended. */
  private int readOnce(Incoming from, SelectionKey key, NoteReceiver receiver) {
    int count;
    try {
      if (!from.secure(key)) {
        return 0;
      }
      count = from.wire.read(from.buffer);
    } catch (SSLException e) {
      log.warn(
          "TLS",
          LimitedLog.addressOf(from.channel),
          "rank %d: closed a link that cannot be encrypted: %s".formatted(rank, e));
      return -1;
    } catch (IOException e) {
      count = -1;
    }
    from.buffer.flip();
    while (from.buffer.remaining() >= OutgoingLink.NOTE_BYTES) {
      long kind = from.buffer.getLong();
      long a = from.buffer.getLong();
      long b = from.buffer.getLong();
      long c = from.buffer.getLong();
      if (from.sender >= 0) {
        receiver.take(from.sender, kind, a, b, c);
      } else if (kind == 0 && b == listener.address().token() && a >= 0 && a < size) {
        from.sender = (int) a;
        unknown.remove(from);
      } else {
        count = -1;
        break;
      }
    }
    from.buffer.compact();
    return count;
  }

  /** Waits, for at most a second, until what was sent over a network has left. */
  private void flushNetwork() {
    Thread reader = thread;
    long until = System.nanoTime() + FLUSH_NANOS;
    boolean _ =
        WaitStrategy.until(
            () ->
                !listener.isOverNetwork()
                    || reader == null
                    || !reader.isAlive()
                    || outgoing.isWritten(),
            until,
            PARK_NANOS);
  }

  /** Closes all connections, removes the socket, and waits for the thread to end. */
  @Override
  public void close() {
    flushNetwork();
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
    }
    listener.selector().wakeup();
    Thread reader = thread;
    if (reader != null && !reader.equals(Thread.currentThread())) {
      joinUninterruptibly(reader);
    }
    log.close();
    try {
      listener.close();
      outgoing.close();
    } catch (IOException e) {
      throw new BackendException("rank " + rank + ": cannot close its socket", e);
    }
  }

  private static void joinUninterruptibly(Thread reader) {
    boolean interrupted = false;
    long until = System.nanoTime() + JOIN_MILLIS * 1_000_000;
    while (reader.isAlive() && System.nanoTime() - until < 0) {
      try {
        reader.join(JOIN_MILLIS);
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
