package dev.tutti.cuda.share;

import dev.tutti.BackendException;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;

/**
 * Carries notes of four numbers between the ranks of a host, in the order of each sender. Any
 * thread may send, which never waits; one thread of its own hands out what comes.
 *
 * <p>A rank listens at a socket; who has a note for it connects. As with {@link IpcChannel} only
 * who knows the receiver's token, and so can read the store, is heard.
 */
public final class RankLinks implements AutoCloseable {
  private static final SecureRandom RANDOM = new SecureRandom();
  private static final int NOTE_BYTES = 4 * Long.BYTES;
  private static final int READ_BYTES = 1 << 13;
  private static final int BACKLOG = 64;
  private static final long JOIN_MILLIS = 5_000;

  private final int rank;
  private final Path path;
  private final long token = RANDOM.nextLong();
  private final ServerSocketChannel server;
  private final Selector selector;
  private final List<Address> peers = new ArrayList<>();
  private final @Nullable Outgoing[] outgoing;
  private final ConcurrentLinkedQueue<Outgoing> blocked = new ConcurrentLinkedQueue<>();
  private volatile @Nullable Thread thread;
  private volatile boolean closed;

  /** Gets notes. */
  public interface Receiver {
    /**
     * Takes a note; must not wait.
     *
     * @param sender whose
     * @param kind first number, not 0
     * @param a second number
     * @param b third number
     * @param c fourth number
     */
    void take(int sender, long kind, long a, long b, long c);

    /** Is told why no more notes can come. */
    void fail(IOException cause);
  }

  /** Is where a rank listens. */
  private record Address(String path, long token) {}

  /** Is the connection to a peer, with what it could not take yet. */
  private static final class Outgoing {
    final SocketChannel channel;
    final ArrayDeque<ByteBuffer> waiting = new ArrayDeque<>();

    Outgoing(SocketChannel channel) {
      this.channel = channel;
    }

    /** Tells whether all is written. */
    synchronized boolean flush() throws IOException {
      while (!waiting.isEmpty()) {
        ByteBuffer first = waiting.getFirst();
        channel.write(first);
        if (first.hasRemaining()) {
          return false;
        }
        waiting.removeFirst();
      }
      return true;
    }

    synchronized boolean write(ByteBuffer note) throws IOException {
      waiting.addLast(note);
      return flush();
    }
  }

  /** Is the connection from a peer. */
  private static final class Incoming {
    final ByteBuffer buffer = ByteBuffer.allocate(READ_BYTES);
    int sender = -1;
  }

  private RankLinks(int rank, int size, Path path) throws IOException {
    this.rank = rank;
    this.path = path;
    this.outgoing = new @Nullable Outgoing[size];
    server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    try {
      server.bind(UnixDomainSocketAddress.of(path), BACKLOG);
      server.configureBlocking(false);
      selector = Selector.open();
    } catch (IOException | RuntimeException e) {
      server.close();
      throw e;
    }
    server.register(selector, SelectionKey.OP_ACCEPT);
  }

  /**
   * Opens the links of all ranks; all call it at once.
   *
   * @param directory where sockets can be made, the same on all ranks
   * @param exchange of the group
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @throws BackendException on all ranks, if one of them cannot make its socket
   */
  public static RankLinks open(Path directory, StoreExchange exchange, long deadlineNanos) {
    int rank = exchange.rank();
    HexFormat hex = HexFormat.of();
    Path path = directory.resolve("tutti-" + rank + "-" + hex.toHexDigits(RANDOM.nextLong()));
    RankLinks links = null;
    String introduction;
    try {
      links = new RankLinks(rank, exchange.size(), path);
      introduction = "+" + hex.toHexDigits(links.token) + path;
    } catch (IOException | RuntimeException e) {
      introduction = "!rank " + rank + ": cannot make the socket " + path + ": " + e.getMessage();
    }
    try {
      byte[] own = introduction.getBytes(StandardCharsets.UTF_8);
      List<byte[]> all = exchange.allGather(own, deadlineNanos);
      List<String> texts = all.stream().map(b -> new String(b, StandardCharsets.UTF_8)).toList();
      for (String text : texts) {
        if (text.charAt(0) != '+') {
          throw new BackendException((links == null ? introduction : text).substring(1));
        }
      }
      if (links == null) {
        throw new AssertionError("own socket is missing");
      }
      for (String text : texts) {
        links.peers.add(
            new Address(text.substring(17), HexFormat.fromHexDigitsToLong(text, 1, 17)));
      }
      return links;
    } catch (RuntimeException | Error e) {
      if (links != null) {
        links.close();
      }
      throw e;
    }
  }

  /** Begins to hand out what comes; the second and later calls do nothing. */
  public synchronized void listen(Receiver receiver) {
    if (thread == null && !closed) {
      thread = Thread.ofPlatform().daemon().name("tutti-cuda-" + rank).start(() -> run(receiver));
    }
  }

  /**
   * Sends a note.
   *
   * @param peer to whom
   * @param kind first number, not 0
   * @param a second number
   * @param b third number
   * @param c fourth number
   * @throws BackendException if the peer does not listen any more
   */
  public synchronized void send(int peer, long kind, long a, long b, long c) {
    try {
      Outgoing to = outgoing[peer];
      if (to == null) {
        to = connect(peers.get(peer));
        outgoing[peer] = to;
      }
      if (!to.write(note(kind, a, b, c))) {
        blocked.add(to);
        selector.wakeup();
      }
    } catch (IOException e) {
      throw new BackendException(
          "rank " + rank + ": rank " + peer + " does not listen any more: " + e.getMessage(), e);
    }
  }

  private Outgoing connect(Address address) throws IOException {
    SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(address.path));
    try {
      channel.configureBlocking(false);
      Outgoing made = new Outgoing(channel);
      made.write(note(0, rank, address.token, 0));
      return made;
    } catch (IOException e) {
      channel.close();
      throw e;
    }
  }

  private static ByteBuffer note(long kind, long a, long b, long c) {
    return ByteBuffer.allocate(NOTE_BYTES).putLong(kind).putLong(a).putLong(b).putLong(c).flip();
  }

  private void run(Receiver receiver) {
    try {
      while (!closed) {
        selector.select();
        flushBlocked();
        for (SelectionKey key : selector.selectedKeys()) {
          if (key.isAcceptable()) {
            accept();
          } else if (key.isReadable()) {
            read(key, receiver);
          }
        }
        selector.selectedKeys().clear();
      }
    } catch (IOException e) {
      if (!closed) {
        receiver.fail(e);
      }
    } catch (ClosedSelectorException e) {
      // Closed meanwhile.
    }
  }

  private void flushBlocked() throws IOException {
    for (int left = blocked.size(); left > 0; left--) {
      Outgoing next = blocked.poll();
      if (next == null) {
        return;
      }
      if (next.flush()) {
        SelectionKey key = next.channel.keyFor(selector);
        if (key != null) {
          key.interestOps(0);
        }
      } else {
        next.channel.register(selector, SelectionKey.OP_WRITE);
        blocked.add(next);
      }
    }
  }

  private void accept() throws IOException {
    SocketChannel channel = server.accept();
    if (channel != null) {
      channel.configureBlocking(false);
      channel.register(selector, SelectionKey.OP_READ, new Incoming());
    }
  }

  private void read(SelectionKey key, Receiver receiver) throws IOException {
    Incoming from = (Incoming) key.attachment();
    SocketChannel channel = (SocketChannel) key.channel();
    if (from == null) {
      return;
    }
    int count;
    try {
      count = channel.read(from.buffer);
    } catch (IOException e) {
      count = -1;
    }
    from.buffer.flip();
    while (from.buffer.remaining() >= NOTE_BYTES) {
      long kind = from.buffer.getLong();
      long a = from.buffer.getLong();
      long b = from.buffer.getLong();
      long c = from.buffer.getLong();
      if (from.sender >= 0) {
        receiver.take(from.sender, kind, a, b, c);
      } else if (kind == 0 && b == token && a >= 0 && a < outgoing.length) {
        from.sender = (int) a;
      } else {
        count = -1;
        break;
      }
    }
    from.buffer.compact();
    if (count < 0) {
      key.cancel();
      channel.close();
    }
  }

  /** Closes all connections, removes the socket and waits for the thread to end. */
  @Override
  public void close() {
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
    }
    selector.wakeup();
    Thread reader = thread;
    if (reader != null && !reader.equals(Thread.currentThread())) {
      joinUninterruptibly(reader);
    }
    try {
      for (SelectionKey key : selector.keys()) {
        key.channel().close();
      }
      selector.close();
      server.close();
      synchronized (this) {
        for (Outgoing each : outgoing) {
          if (each != null) {
            each.channel.close();
          }
        }
      }
      Files.deleteIfExists(path);
    } catch (IOException e) {
      throw new BackendException("rank " + rank + ": cannot close the socket " + path, e);
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
