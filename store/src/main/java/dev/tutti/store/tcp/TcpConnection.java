package dev.tutti.store.tcp;

import dev.tutti.StoreConnectionException;
import dev.tutti.cpu.wait.BusyCores;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.spi.HostPort;
import dev.tutti.spi.Time;
import dev.tutti.store.net.SelfConnection;
import dev.tutti.tls.TlsChannel;
import dev.tutti.tls.TlsSettings;
import java.io.EOFException;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ByteChannel;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.channels.UnsupportedAddressTypeException;
import java.util.Arrays;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/** A connection to a store server over one socket; each step has a deadline. */
final class TcpConnection implements AutoCloseable {
  /*
   * One thread at a time uses a connection; any thread may close it, which ends the wait of the
   * thread that uses it. The channel is non-blocking, so that reads and writes can be abandoned.
   * The reply to a request is never there at once but usually soon, so the thread first yields
   * before each of a few looks, and then waits in the selector. Deadlines are in terms of
   * time.nanoTime().
   *
   * An interrupt ends only a wait for an action of another rank (readAnswer). Other waits are
   * short; they continue and leave the thread's interrupt status unchanged.
   */
  /** How long a server may take to answer if the time-out of the call does not say. */
  static final long IO_NANOS = 30_000_000_000L;

  private static final Logger LOG = System.getLogger("dev.tutti.store.tcp.TcpStore");
  private static final int BUFFER_BYTES = 8 * 1024;

  /** The room for a value before it has come; more is taken as more comes. */
  private static final int FIRST_BYTES = 1 << 20;

  private static final byte TLS_ALERT = 21;

  /** Collects the next request. */
  final SendQueue out;

  private final SocketChannel channel;

  /** The channel, or the TLS channel that encrypts it. */
  private final ByteChannel wire;

  private final @Nullable TlsChannel tls;
  private final Selector selector;
  private final SelectionKey key;
  private final Time time;
  private final WaitStrategy wait;
  private boolean asked;
  private final ByteBuffer in =
      ByteBuffer.allocateDirect(BUFFER_BYTES).order(ByteOrder.LITTLE_ENDIAN).limit(0);

  private TcpConnection(
      SocketChannel channel,
      @Nullable SSLContext context,
      Selector selector,
      SelectionKey key,
      Time time) {
    this.channel = channel;
    TlsChannel secured =
        context == null ? null : new TlsChannel(channel, TlsSettings.engine(context, true));
    this.tls = secured;
    this.wire = secured == null ? channel : secured;
    this.selector = selector;
    this.key = key;
    this.time = time;
    this.out = new SendQueue(time);
    this.wait = WaitStrategy.yielding(WaitStrategy.AWAKE_NANOS, BusyCores.ofStore(), time);
  }

  /**
   * Connects, and puts the greeting of the protocol before the first request.
   *
   * @param channel a new channel, which is closed if this fails
   * @param server the address of the server
   * @param tls the context for encryption; null for a plain connection
   * @param connectBy when the server must have accepted the connection
   * @param deadline when it must be encrypted, too
   * @param time by which it waits
   * @throws TlsRefusedException if only one of the two sides uses encryption, or one does not trust
   *     the other
   * @throws DeadlineException if there is no connection in time
   * @throws IOException if connecting fails
   */
  static TcpConnection open(
      SocketChannel channel,
      InetSocketAddress server,
      @Nullable SSLContext tls,
      long connectBy,
      long deadline,
      Time time)
      throws IOException {
    Selector selector = null;
    try {
      selector = channel.provider().openSelector();
      channel.configureBlocking(false);
      channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
      KeepAlive.set(channel);
      SelectionKey key = channel.register(selector, SelectionKey.OP_CONNECT);
      TcpConnection connection = new TcpConnection(channel, tls, selector, key, time);
      if (!channel.connect(server)) {
        while (!channel.finishConnect()) {
          connection.await(SelectionKey.OP_CONNECT, connectBy);
        }
      }
      SelfConnection.refuse(channel);
      connection.secure(deadline);
      // The greeting and the first request must be sent in one piece: PyTorch's event-loop server
      // misreads a greeting that arrives in two.
      connection.out.putByte((byte) Wire.VALIDATE);
      connection.out.putInt(Wire.MAGIC);
      return connection;
    } catch (IOException | RuntimeException e) {
      channel.close();
      if (selector != null) {
        selector.close();
      }
      if (e instanceof UnsupportedAddressTypeException) {
        throw new StoreConnectionException(
            HostPort.text(server)
                + " is an IPv6 address, but this JVM has no IPv6 (java.net.preferIPv4Stack, or the"
                + " host has it off)",
            e);
      }
      throw e;
    }
  }

  /** Completes the TLS handshake with the server, if the connection is encrypted. */
  private void secure(long deadline) throws IOException {
    TlsChannel secured = tls;
    if (secured == null) {
      return;
    }
    try {
      while (!secured.handshake()) {
        await(secured.hasUnsent() ? SelectionKey.OP_WRITE : SelectionKey.OP_READ, deadline);
      }
    } catch (SSLException | EOFException e) {
      sayGoodbye(secured);
      throw TlsRefusedException.ofClient(e);
    }
  }

  /** Sends the server the reason, as far as the socket accepts it. */
  private static void sayGoodbye(TlsChannel secured) {
    try {
      secured.close();
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "closing TLS", e);
    }
  }

  /** Sends the collected requests. */
  void send(long deadline) throws IOException {
    try {
      while (!flush()) {
        await(SelectionKey.OP_WRITE, deadline);
      }
    } catch (SSLException e) {
      throw TlsRefusedException.ofClient(e);
    }
    asked = true;
  }

  /** Sends as much as the socket accepts; returns whether that was everything. */
  private boolean flush() throws IOException {
    TlsChannel secured = tls;
    if (secured != null && !secured.flush()) {
      return false;
    }
    long _ = out.flush(wire);
    return out.pending() == 0 && (secured == null || !secured.hasUnsent());
  }

  private int read(ByteBuffer into) throws IOException {
    try {
      return wire.read(into);
    } catch (SSLException e) {
      throw TlsRefusedException.ofClient(e);
    }
  }

  byte readByte(long deadline) throws IOException {
    need(1, deadline);
    return in.get();
  }

  long readLong(long deadline) throws IOException {
    need(Long.BYTES, deadline);
    return in.getLong();
  }

  /** Reads a length and that number of bytes. */
  byte[] readBytes(long deadline) throws IOException {
    return readBytes(readLong(deadline), deadline);
  }

  /** Reads bytes whose length is known; takes memory as they come. */
  byte[] readBytes(long length, long deadline) throws IOException {
    if (length < 0 || length > Integer.MAX_VALUE - 8) {
      throw new IOException("the store server announced a value of " + length + " bytes");
    }
    byte[] bytes = new byte[(int) Math.min(length, FIRST_BYTES)];
    fill(bytes, 0, deadline);
    while (bytes.length < length) {
      int filled = bytes.length;
      bytes = Arrays.copyOf(bytes, (int) Math.min(length, 2L * filled));
      fill(bytes, filled, deadline);
    }
    return bytes;
  }

  /** Reads until an array is full. */
  private void fill(byte[] bytes, int from, long deadline) throws IOException {
    int filled = Math.min(bytes.length - from, in.remaining());
    in.get(bytes, from, filled);
    ByteBuffer rest = ByteBuffer.wrap(bytes, from + filled, bytes.length - from - filled);
    while (rest.hasRemaining()) {
      if (rest.remaining() < BUFFER_BYTES) {
        need(rest.remaining(), deadline);
        in.get(bytes, rest.position(), rest.remaining());
        break;
      }
      read(rest, deadline);
    }
  }

  /**
   * Waits for the byte that ends a wait.
   *
   * @throws DeadlineException if it has not come by the deadline
   * @throws InterruptedException if the thread is interrupted in the meantime
   */
  byte readAnswer(long deadline) throws IOException, InterruptedException {
    while (!in.hasRemaining()) {
      in.clear();
      int read = read(in);
      in.flip();
      ended(read);
      if (read == 0) {
        select(SelectionKey.OP_READ, deadline);
        if (Thread.interrupted()) {
          throw new InterruptedException();
        }
      }
    }
    return in.get();
  }

  /** Returns whether the last input, which was not an answer, is a TLS alert. */
  boolean hasAlert() {
    int at = in.position();
    return in.remaining() >= 2 && in.get(at) == TLS_ALERT && in.get(at + 1) == Wire.TLS_MAJOR;
  }

  /**
   * Returns whether the server has sent unrequested data or has closed the connection, which must
   * then not be reused.
   */
  boolean isStale() {
    try {
      return in.hasRemaining() || read(in.clear()) != 0;
    } catch (IOException e) {
      return true;
    } finally {
      in.limit(0);
    }
  }

  @Override
  public void close() {
    try {
      channel.close();
      selector.close();
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "closing", e);
    }
  }

  private void need(int bytes, long deadline) throws IOException {
    if (in.remaining() < bytes) {
      in.compact();
      try {
        while (in.position() < bytes) {
          read(in, deadline);
        }
      } finally {
        in.flip();
      }
    }
  }

  private void read(ByteBuffer into, long deadline) throws IOException {
    int read = 0;
    if (asked) {
      asked = false;
      wait.start();
      while (read == 0 && wait.staysAwake()) {
        read = read(into);
      }
    } else {
      read = read(into);
    }
    while (read == 0) {
      await(SelectionKey.OP_READ, deadline);
      read = read(into);
    }
    ended(read);
  }

  private static void ended(int read) throws EOFException {
    if (read < 0) {
      throw new EOFException("the store server closed the connection");
    }
  }

  private void await(int operation, long deadline) throws IOException {
    boolean interrupted = Thread.interrupted();
    try {
      select(operation, deadline);
      interrupted |= Thread.interrupted();
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /**
   * Waits until an operation is possible. At the deadline it looks once more: a thread that stood
   * still has not seen what came in the meantime.
   */
  private void select(int operation, long deadline) throws IOException {
    try {
      if (key.interestOps() != operation) {
        key.interestOps(operation);
      }
      long left = deadline - time.nanoTime();
      if (time.select(selector, ready -> {}, left) == 0 && left <= 0) {
        throw new DeadlineException("the store server did not answer in time");
      }
    } catch (ClosedSelectorException | java.nio.channels.CancelledKeyException e) {
      throw new IOException("the connection was closed", e);
    }
  }
}
