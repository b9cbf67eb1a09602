package dev.tutti.store.tcp;

import dev.tutti.Settings;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.spi.HostPort;
import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import dev.tutti.store.net.ReleasedPort;
import dev.tutti.store.table.Arguments;
import dev.tutti.tls.TlsSettings;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.spi.SelectorProvider;
import java.time.Duration;
import java.util.HexFormat;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/**
 * A server of a store over TCP, for {@link TcpStore} and for ranks of PyTorch 2.2 or newer (c10d:
 * the server of {@code TCPStore}).
 *
 * <p>One daemon thread, {@code tutti-st}, serves all clients. A client that sends an invalid
 * request, or more than a store accepts, is dropped with a logged reason; the others do not notice.
 * If the job has a {@linkplain JobToken token}, a client that does not prove it is dropped too.
 */
public final class TcpStoreServer implements AutoCloseable {
  /** The port that c10d uses if none is given. */
  public static final int DEFAULT_PORT = 29500;

  private static final Logger LOG = System.getLogger(TcpStoreServer.class.getName());
  private static final int BACKLOG = 16 * 1024;
  static final Duration STUCK = Duration.ofSeconds(30);
  private static final Duration CLOSE = Duration.ofSeconds(10);

  private final ServerLoop loop;
  private final Time time;
  private final Thread thread;
  private final int port;
  private final Object lock = new Object();
  private long joined;

  /**
   * Starts listening on all addresses, IPv6 and IPv4, with the token of the environment.
   *
   * @param port the port, or 0 for a free one
   * @throws StoreConnectionException if the port is in use or not available
   */
  public TcpStoreServer(int port) {
    this(null, port);
  }

  /**
   * Starts listening, with the token of the environment.
   *
   * @param address the local address to listen on; null for all, IPv6 and IPv4
   * @param port the port, or 0 for a free one
   * @throws StoreConnectionException if the port is in use or not available
   */
  public TcpStoreServer(@Nullable InetAddress address, int port) {
    this(address, port, JobToken.fromEnvironment());
  }

  /**
   * Starts listening.
   *
   * @param address the local address to listen on; null for all, IPv6 and IPv4
   * @param port the port, or 0 for a free one
   * @param token the token that clients must have; {@link JobToken#NONE} to serve all clients;
   *     {@code TUTTI_TLS} is that of the environment
   * @throws StoreConnectionException if the port is in use or not available
   */
  public TcpStoreServer(@Nullable InetAddress address, int port, JobToken token) {
    this(address, port, token, TlsSettings.load(Settings.fromEnvironment()));
  }

  /**
   * Starts listening.
   *
   * @param address the local address to listen on; null for all, IPv6 and IPv4
   * @param port the port, or 0 for a free one
   * @param token the token that clients must have; {@link JobToken#NONE} to serve all clients
   * @param tls the context that encrypts the connections, with certificates on both sides; null for
   *     no encryption
   * @throws StoreConnectionException if the port is in use or not available
   */
  public TcpStoreServer(
      @Nullable InetAddress address, int port, JobToken token, @Nullable SSLContext tls) {
    this(address, port, token, tls, Time.SYSTEM, SelectorProvider.provider());
  }

  /** Starts a server for its own process, on all addresses. */
  TcpStoreServer(TcpStoreOptions options) {
    this(null, options.port(), options.token(), options.tls(), options.time(), options.channels());
  }

  TcpStoreServer(
      @Nullable InetAddress address,
      int port,
      JobToken token,
      @Nullable SSLContext tls,
      Time time,
      SelectorProvider channels) {
    this.time = time;
    if (port < 0 || port > 0xffff) {
      throw new IllegalArgumentException("port must be 0 to 65535: " + port);
    }
    InetSocketAddress wanted =
        address == null ? new InetSocketAddress(port) : new InetSocketAddress(address, port);
    ServerSocketChannel listener = listen(wanted, time, channels);
    InetSocketAddress local;
    try {
      local = (InetSocketAddress) listener.getLocalAddress();
      this.port = local.getPort();
      this.loop =
          new ServerLoop(
              listener,
              this.port,
              token,
              tls,
              HexFormat.of().toHexDigits(time.random()) + HexFormat.of().toHexDigits(time.random()),
              STUCK.toNanos(),
              time,
              this::joined,
              this::ended);
    } catch (IOException e) {
      throw closing(listener, new StoreException("cannot start a store server: " + e, e));
    }
    this.thread = time.start("tutti-st", loop);
    if (!token.isSet() && tls == null && !local.getAddress().isLoopbackAddress()) {
      LOG.log(
          Level.WARNING,
          "store server on port %d accepts any client that reaches it; %s is not set"
              .formatted(this.port, JobToken.SETTING.name()));
    }
  }

  private static ServerSocketChannel listen(
      InetSocketAddress wanted, Time time, SelectorProvider channels) {
    ServerSocketChannel listener;
    try {
      listener = channels.openServerSocketChannel();
    } catch (IOException e) {
      throw new StoreConnectionException("cannot open a socket for a store server: " + e, e);
    }
    try {
      listener.setOption(StandardSocketOptions.SO_REUSEADDR, true);
      return ReleasedPort.bind(time, () -> listener.bind(wanted, BACKLOG));
    } catch (BindException e) {
      throw closing(
          listener,
          new StoreConnectionException(
              (wanted.getPort() == 0
                      ? "no port of %2$s can be bound (%3$s); choose another address"
                      : "port %d of %s is in use or cannot be bound (%s); choose another, or 0 for"
                          + " a free one")
                  .formatted(
                      wanted.getPort(), wanted.getAddress().getHostAddress(), e.getMessage()),
              e));
    } catch (IOException e) {
      throw closing(
          listener,
          new StoreConnectionException("cannot listen on " + HostPort.text(wanted) + ": " + e, e));
    }
  }

  private static StoreException closing(ServerSocketChannel listener, StoreException failure) {
    try {
      listener.close();
    } catch (IOException e) {
      failure.addSuppressed(e);
    }
    return failure;
  }

  /**
   * Returns whether the server is running: it was not closed, and did not end because of an error.
   */
  public boolean isRunning() {
    return thread.isAlive() && !loop.hasEnded();
  }

  /** Returns the port on which the server listens. */
  public int port() {
    return port;
  }

  /**
   * Waits until as many processes have joined as expected (each adds 1 to c10d's {@code init/}).
   *
   * @param expected the number of processes
   * @param timeout the deadline from now
   * @throws StoreTimeoutException if some are missing by then, giving the number that joined
   * @throws StoreException if the server ends
   */
  public void awaitWorkers(int expected, Duration timeout) {
    awaitWorkers(expected, Arguments.deadline(time, Arguments.nanos(timeout)), timeout);
  }

  /**
   * Does the same with a deadline.
   *
   * @param deadline the deadline, in terms of this server's clock
   * @param timeout what the exception gives as the time-out
   */
  void awaitWorkers(int expected, long deadline, Duration timeout) {
    synchronized (lock) {
      while (joined < expected) {
        long left = deadline - time.nanoTime();
        if (loop.hasEnded()) {
          throw new StoreException(
              "store server on port %d has stopped; %d/%d clients had joined"
                  .formatted(port, joined, expected));
        }
        if (left <= 0) {
          throw new StoreTimeoutException(
              "timed out after %d ms waiting for clients on port %d: %d/%d clients joined"
                  .formatted(timeout.toMillis(), port, joined, expected));
        }
        try {
          time.await(lock, left);
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          throw new StoreException(
              "interrupted while waiting for clients: %d/%d clients had joined"
                  .formatted(joined, expected),
              e);
        }
      }
    }
  }

  /**
   * Removes all keys and queues except those whose names begin with a prefix; clients stay
   * connected.
   *
   * @param keptPrefix the prefix of the names that are kept
   * @throws StoreException if the server has ended
   */
  public void forgetAllBut(String keptPrefix) {
    AtomicBoolean done = new AtomicBoolean();
    loop.execute(
        commands -> {
          commands.forgetAllBut(keptPrefix);
          synchronized (lock) {
            done.set(true);
            lock.notifyAll();
          }
        });
    try {
      if (!awaitDone(done)) {
        throw new StoreException("store server on port %d has stopped".formatted(port));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new StoreException("interrupted while the store server was deleting its keys", e);
    }
  }

  private boolean awaitDone(AtomicBoolean done) throws InterruptedException {
    long deadline = time.deadline(CLOSE);
    synchronized (lock) {
      while (!done.get() && isRunning() && deadline - time.nanoTime() > 0) {
        time.await(lock, deadline - time.nanoTime());
      }
      return done.get();
    }
  }

  private void ended() {
    synchronized (lock) {
      lock.notifyAll();
    }
  }

  private void joined(long count) {
    synchronized (lock) {
      joined = count;
      lock.notifyAll();
    }
  }

  /**
   * Drops all clients, removes all keys and frees the port; the second and later calls have no
   * effect.
   */
  @Override
  public void close() {
    loop.stop();
    try {
      boolean _ = time.join(thread, CLOSE.toNanos());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
