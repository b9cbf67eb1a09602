package dev.tutti.cuda.share;

import dev.tutti.BackendException;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import dev.tutti.store.net.LimitedLog;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.List;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/**
 * Links that carry notes of four numbers between ranks on one host or several, in the order of each
 * sender. Any thread may send, and sending never waits; a thread of the links delivers the received
 * notes.
 *
 * <p>A rank listens on a socket. A rank that has a note for it connects to it; in addition, each
 * rank connects at once to the next {@value #WATCHERS} ranks. As with {@link IpcChannel}, a rank
 * accepts notes only from senders that know the number of its socket, and so can read the store.
 * Over TCP both ends prove that they have the job's token, and the links may be encrypted. A rank
 * has one link to each other rank.
 */
public final class RankLinks implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger(RankLinks.class.getName());
  private static final SecureRandom RANDOM = new SecureRandom();
  private static final long JOIN_MILLIS = 5_000;
  private static final long FLUSH_NANOS = 1_000_000_000;
  private static final long PARK_NANOS = 100_000;

  /**
   * The number of ranks to which a rank connects before it has a note: these notice from the end of
   * the connection that the rank died.
   */
  private static final int WATCHERS = 15;

  private final int rank;
  private final int size;
  private final LinkListener listener;
  private final OutgoingLinks outgoing;
  private final IncomingLinks incoming;
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

  private RankLinks(
      int rank,
      LinkListener listener,
      List<LinkAddress> peers,
      @Nullable SSLContext tls,
      JobToken token) {
    this.rank = rank;
    this.size = peers.size();
    this.listener = listener;
    this.outgoing = new OutgoingLinks(rank, peers, tls, token, listener.selector());
    this.incoming =
        new IncomingLinks(rank, size, listener, tls, token, new LimitedLog(LOG, Time.SYSTEM));
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
        exchange,
        deadlineNanos,
        null,
        JobToken.NONE,
        path.toString(),
        () -> UnixDomainSocketAddress.of(path));
  }

  /**
   * Opens links between ranks on any hosts, over TCP; all ranks must call this together.
   *
   * @param local supplies the address at which this rank listens, on a free port
   * @param tls encrypts the links, with certificates at both ends; null for no encryption
   * @param token the token of the job, which both ends of a link prove; there may be none
   * @param exchange the group's exchange
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @throws BackendException on all ranks, if any of them cannot create its socket, or not all of
   *     them encrypt
   */
  public static RankLinks open(
      Local local,
      @Nullable SSLContext tls,
      JobToken token,
      StoreExchange exchange,
      long deadlineNanos) {
    return open(
        exchange,
        deadlineNanos,
        tls,
        token,
        "for TCP",
        () -> new InetSocketAddress(local.address(), 0));
  }

  private static RankLinks open(
      StoreExchange exchange,
      long deadlineNanos,
      @Nullable SSLContext tls,
      JobToken token,
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
      return new RankLinks(rank, listener, peers, tls, token);
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
    Selector selector = listener.selector();
    try {
      while (!closed) {
        selector.select(incoming.millisToLook());
        outgoing.flushBlocked(receiver);
        for (SelectionKey key : selector.selectedKeys()) {
          if (!key.isValid()) {
            continue; // A flush closed it.
          }
          if (key.isAcceptable()) {
            incoming.accept();
          } else if (key.attachment() instanceof IncomingLink from) {
            incoming.read(from, key, receiver);
          }
        }
        incoming.look();
        selector.selectedKeys().clear();
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

  /** Waits, for at most a second, until what was sent over a network has left. */
  private void flushNetwork() {
    Thread reader = thread;
    if (listener.isOverNetwork() && reader != null) {
      long until = System.nanoTime() + FLUSH_NANOS;
      boolean _ =
          WaitStrategy.until(
              () -> !reader.isAlive() || outgoing.isWritten(), until, PARK_NANOS, Time.SYSTEM);
    }
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
    incoming.close();
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
