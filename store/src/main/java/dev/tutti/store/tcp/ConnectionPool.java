package dev.tutti.store.tcp;

import dev.tutti.StoreClosedException;
import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.spi.SelectorProvider;
import java.util.ArrayDeque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/** Opens, keeps and closes the connections of one client; used by all its threads. */
final class ConnectionPool implements AutoCloseable {
  /** The maximum number of idle connections that are kept. */
  static final int MAX_IDLE = 4;

  /** How long an address may take to accept a connection before the next one is tried. */
  private static final long CONNECT_NANOS = TimeUnit.SECONDS.toNanos(10);

  private final String host;
  private final int port;
  private final JobToken token;
  private final @Nullable SSLContext tls;
  private final Time time;
  private final SelectorProvider channels;
  private final Set<TcpConnection> open = new LinkedHashSet<>();
  private final ArrayDeque<TcpConnection> idle = new ArrayDeque<>();
  private volatile @Nullable InetSocketAddress server;
  private volatile boolean closed;

  ConnectionPool(TcpStoreOptions server) {
    this.host = server.host();
    this.port = server.port();
    this.token = server.token();
    this.tls = server.tls();
    this.time = server.time();
    this.channels = server.channels();
  }

  Time time() {
    return time;
  }

  int port() {
    return port;
  }

  String name() {
    return host + ":" + port;
  }

  /** Connects to the server; after the first time, to the address that answered then. */
  TcpConnection open(long deadline) throws IOException {
    InetSocketAddress known = server;
    if (known != null) {
      return open(known, deadline, deadline);
    }
    IOException failure = new IOException("host " + host + " has no address");
    for (InetAddress address : InetAddress.getAllByName(host)) {
      InetSocketAddress candidate = new InetSocketAddress(address, port);
      try {
        long now = time.nanoTime();
        long connectBy = now + Math.min(deadline - now, CONNECT_NANOS);
        TcpConnection connection = open(candidate, connectBy, deadline);
        server = candidate;
        return connection;
      } catch (RefusedException e) {
        throw e;
      } catch (IOException e) {
        failure = e;
      }
    }
    throw failure;
  }

  /** Opens a connection, and proves the token on it if there is one. */
  private TcpConnection open(InetSocketAddress address, long connectBy, long deadline)
      throws IOException {
    TcpConnection connection =
        TcpConnection.open(channels.openSocketChannel(), address, tls, connectBy, deadline, time);
    register(connection);
    if (token.isSet()) {
      try {
        TokenHandshake.run(connection, token, deadline);
      } catch (IOException | RuntimeException e) {
        drop(connection);
        throw e;
      }
    }
    return connection;
  }

  private void register(TcpConnection connection) throws IOException {
    synchronized (open) {
      if (!closed) {
        open.add(connection);
        return;
      }
    }
    connection.close();
    throw new IOException("closed");
  }

  /** Takes an idle connection or opens one; the caller must return it with {@link #release}. */
  TcpConnection borrow(long deadline) throws IOException {
    while (true) {
      TcpConnection connection;
      synchronized (open) {
        connection = idle.poll();
      }
      if (connection == null) {
        return open(deadline);
      }
      if (!connection.isStale()) {
        return connection;
      }
      drop(connection);
    }
  }

  /** Keeps a connection for later, or closes it. */
  void release(TcpConnection connection, boolean reusable) {
    synchronized (open) {
      if (reusable && !closed && idle.size() < MAX_IDLE) {
        idle.push(connection);
        return;
      }
    }
    drop(connection);
  }

  void drop(TcpConnection connection) {
    synchronized (open) {
      open.remove(connection);
    }
    connection.close();
  }

  /** Returns how many connections are open. */
  int size() {
    synchronized (open) {
      return open.size();
    }
  }

  boolean isClosed() {
    return closed;
  }

  void requireOpen() {
    if (closed) {
      throw new StoreClosedException("the store at " + name() + " is closed");
    }
  }

  /** Closes all connections, which ends the calls that use them. */
  @Override
  public void close() {
    List<TcpConnection> all;
    synchronized (open) {
      closed = true;
      all = List.copyOf(open);
      open.clear();
      idle.clear();
    }
    all.forEach(TcpConnection::close);
  }
}
