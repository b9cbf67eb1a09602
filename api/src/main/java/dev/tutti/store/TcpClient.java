package dev.tutti.store;

import dev.tutti.StoreClosedException;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/** Holds the connections of one {@link TcpStore}, and what its server can do. */
final class TcpClient implements AutoCloseable {
  /*
   * The main connection carries every call that the server answers at once, one at a time, in the order
   * of the calls: so a thread sees what another thread of this client wrote before, though PyTorch's
   * protocol does not acknowledge a set. A call that may have to wait for other ranks takes a side
   * connection for itself while it waits. Side connections are opened when needed and up to MAX_IDLE are
   * kept for later; there is no other limit, since a limit would let one waiting call stall another.
   *
   * A connection on which something went wrong is closed: a late reply must not be taken for another's.
   * The next call connects anew, if the server is surely the same one: a Tutti server tells by its
   * number, another one only when the loss was this client's own doing. A restarted server has lost its
   * keys, and that must not go unnoticed.
   */
  static final int MAX_IDLE = 4;

  /** Is how long a server may take to answer, however short the time-out of a call. */
  private static final long GRACE_NANOS = TimeUnit.SECONDS.toNanos(1);

  private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(5);
  private static final long LONGEST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final int NONCE_BYTES = 16;

  private final String host;
  private final int port;
  private final long timeoutNanos;
  private final byte[] nonce = new byte[NONCE_BYTES];
  private final ReentrantLock mainLock = new ReentrantLock();
  private @Nullable TcpConnection main;
  private @Nullable IOException loss;
  private boolean lossIsHarmless;
  private boolean unanswered;
  private String capability = "";
  private final Set<TcpConnection> open = new HashSet<>();
  private final ArrayDeque<TcpConnection> idle = new ArrayDeque<>();
  private boolean closed;

  private TcpClient(String host, int port, long timeoutNanos) {
    this.host = host;
    this.port = port;
    this.timeoutNanos = timeoutNanos;
    new SecureRandom().nextBytes(nonce);
  }

  /** Sends requests and reads their replies. */
  interface Exchange<T extends @Nullable Object> {
    T run(TcpConnection connection, long deadline) throws IOException;
  }

  /** Adds a request. */
  interface Request {
    void put(SendQueue out);
  }

  /** Connects, and tries again with growing pauses until the deadline. */
  static TcpClient connect(String host, int port, Duration timeout) {
    TcpClient client = new TcpClient(host, port, Arguments.nanos(timeout));
    client.connect();
    return client;
  }

  private void connect() {
    long deadline = Arguments.deadline(timeoutNanos);
    long pause = FIRST_PAUSE_NANOS;
    for (int attempt = 1; ; attempt++) {
      try {
        main = openMain(deadline);
        return;
      } catch (IOException e) {
        long left = deadline - System.nanoTime();
        if (left <= 0) {
          throw new StoreConnectionException(
              "no store server at %s:%d within %d ms, %d attempts: %s"
                  .formatted(host, port, TimeUnit.NANOSECONDS.toMillis(timeoutNanos), attempt, e),
              e);
        }
        long jittered = pause / 2 + ThreadLocalRandom.current().nextLong(pause);
        LockSupport.parkNanos(Math.min(left, jittered));
        if (Thread.currentThread().isInterrupted()) {
          throw new StoreException(
              "interrupted while connecting to the store server at %s:%d".formatted(host, port),
              new InterruptedException());
        }
        pause = Math.min(LONGEST_PAUSE_NANOS, pause * 2);
      }
    }
  }

  /** Opens a main connection and asks what the server can do. */
  private TcpConnection openMain(long deadline) throws IOException {
    TcpConnection connection = openConnection(deadline);
    try {
      connection.out.putByte((byte) Wire.COMPARE_SET);
      connection.out.putKey(Wire.CAPABILITY);
      connection.out.putBytes(nonce);
      connection.out.putBytes(nonce);
      connection.send(deadline);
      byte[] answer = connection.readBytes(deadline);
      String found =
          Arrays.equals(answer, nonce) ? "" : new String(answer, StandardCharsets.US_ASCII);
      if (loss == null) {
        capability = found;
      } else if (!found.equals(capability)) {
        throw new IOException("the store server was restarted, its keys are gone");
      }
      return connection;
    } catch (IOException e) {
      drop(connection);
      throw e;
    }
  }

  private TcpConnection openConnection(long deadline) throws IOException {
    IOException failure = null;
    for (InetAddress address : InetAddress.getAllByName(host)) {
      try {
        TcpConnection connection =
            TcpConnection.open(new InetSocketAddress(address, port), deadline);
        synchronized (open) {
          if (closed) {
            connection.close();
            throw new IOException("closed");
          }
          open.add(connection);
        }
        return connection;
      } catch (IOException e) {
        if (failure != null) {
          e.addSuppressed(failure);
        }
        failure = e;
      }
    }
    throw failure == null ? new IOException("host " + host + " has no address") : failure;
  }

  /** Tells whether the server knows Tutti's own queries. */
  boolean isTutti() {
    return capability.startsWith(Wire.CAPABILITY_VERSION + ' ');
  }

  /** Returns bytes that no value has, so a COMPARE_SET with them only reads. */
  byte[] nonce() {
    return nonce;
  }

  String host() {
    return host;
  }

  int port() {
    return port;
  }

  String server() {
    return host + ":" + port;
  }

  /** Runs an exchange on the main connection, with the store's own deadline. */
  <T extends @Nullable Object> T call(Exchange<T> exchange) {
    return call(timeoutNanos, exchange);
  }

  /** Runs an exchange on the main connection; a server is given at least a second. */
  <T extends @Nullable Object> T call(long nanos, Exchange<T> exchange) {
    long deadline = graceful(nanos);
    lockMain(deadline);
    try {
      T result = exchange.run(main(deadline), deadline);
      unanswered = false;
      return result;
    } catch (IOException e) {
      throw lost(e);
    } finally {
      mainLock.unlock();
    }
  }

  /** Sends a request that has no reply. */
  void send(Request request) {
    long deadline = graceful(timeoutNanos);
    lockMain(deadline);
    try {
      TcpConnection connection = main(deadline);
      request.put(connection.out);
      unanswered = true;
      connection.send(deadline);
    } catch (IOException e) {
      throw lost(e);
    } finally {
      mainLock.unlock();
    }
  }

  /** Makes sure that the server has carried out all requests so far. */
  void sync() {
    call(
        (connection, deadline) -> {
          putSync(connection.out);
          connection.send(deadline);
          return connection.readByte(deadline);
        });
  }

  /** Does as {@link #sync()} if there was a request without a reply. */
  void syncIfUnanswered() {
    lockMain(graceful(timeoutNanos));
    boolean needed = unanswered;
    mainLock.unlock();
    if (needed) {
      sync();
    }
  }

  /** Adds a request that changes nothing and is answered with one byte by every server. */
  static void putSync(SendQueue out) {
    out.putByte((byte) Wire.CHECK);
    out.putLong(0);
  }

  /** Allows the next call to connect anew, though the server cannot tell whether it is the same. */
  void forgiveLoss() {
    lockMain(graceful(timeoutNanos));
    lossIsHarmless = true;
    mainLock.unlock();
  }

  /** Does as the other, with nothing to do before the cancel. */
  <T> @Nullable T await(Request request, Exchange<T> result, long nanos) {
    return await(request, result, nanos, () -> {});
  }

  /**
   * Waits on a side connection until the server ends the wait, and reads what it adds.
   *
   * @param request the waiting request
   * @param result reads what follows the byte that ends the wait
   * @param nanos the time-out
   * @param beforeCancel runs at the deadline while the server still counts this call as waiting
   * @return what was read, or null if the deadline came first
   */
  <T> @Nullable T await(Request request, Exchange<T> result, long nanos, Runnable beforeCancel) {
    long deadline = Arguments.deadline(nanos);
    TcpConnection side = null;
    boolean done = false;
    try {
      side = borrow(graceful(nanos));
      request.put(side.out);
      side.send(graceful(nanos));
      boolean canceled = false;
      InterruptedException interrupt = null;
      byte answer;
      try {
        answer = side.readAnswer(deadline);
      } catch (DeadlineException e) {
        beforeCancel.run();
        canceled = true;
        answer = cancel(side);
      } catch (InterruptedException e) {
        interrupt = e;
        canceled = true;
        answer = cancel(side);
        Thread.currentThread().interrupt();
      }
      T value = null;
      // What the server sent before it saw the cancel counts.
      if (answer == Wire.STOP_WAITING) {
        value = result.run(side, graceful(GRACE_NANOS));
        if (canceled) {
          answer = side.readByte(graceful(GRACE_NANOS));
        }
      }
      if (canceled && answer != Wire.WAIT_CANCELED) {
        throw new IOException("the store server answers " + answer + " to a cancelled wait");
      }
      done = true;
      if (value == null && interrupt != null) {
        throw new StoreException("interrupted while waiting at " + server(), interrupt);
      }
      return value;
    } catch (IOException e) {
      throw failure(e);
    } finally {
      if (side != null) {
        release(side, done);
      }
    }
  }

  private static byte cancel(TcpConnection side) throws IOException {
    long deadline = graceful(GRACE_NANOS);
    side.out.putByte((byte) Wire.CANCEL_WAIT);
    side.send(deadline);
    return side.readByte(deadline);
  }

  /**
   * Finds out on a connection of its own whether the server knows a query; one that does not drops
   * that connection.
   *
   * @param request the query; must change nothing
   * @param reply reads the reply
   */
  boolean knows(Request request, Exchange<?> reply) {
    long deadline = graceful(timeoutNanos);
    TcpConnection probe;
    try {
      probe = openConnection(deadline);
    } catch (IOException e) {
      throw failure(e);
    }
    try {
      putSync(probe.out);
      probe.send(deadline);
      probe.readByte(deadline);
      request.put(probe.out);
      probe.send(deadline);
      reply.run(probe, deadline);
      return true;
    } catch (DeadlineException e) {
      throw failure(e);
    } catch (IOException e) {
      sync();
      return false;
    } finally {
      drop(probe);
    }
  }

  @Override
  public void close() {
    List<TcpConnection> all;
    synchronized (open) {
      if (closed) {
        return;
      }
      closed = true;
      all = List.copyOf(open);
      open.clear();
      idle.clear();
    }
    all.forEach(TcpConnection::close);
  }

  private TcpConnection main(long deadline) throws IOException {
    TcpConnection connection = main;
    if (connection == null) {
      IOException lost = loss;
      if (lost != null && !isTutti() && !lossIsHarmless) {
        throw new IOException("the connection was lost before: " + lost.getMessage(), lost);
      }
      lossIsHarmless = false;
      connection = openMain(deadline);
      main = connection;
    }
    return connection;
  }

  private StoreException lost(IOException e) {
    TcpConnection connection = main;
    boolean mayHaveLostSets = unanswered && connection != null;
    main = null;
    unanswered = false;
    if (connection != null) {
      drop(connection);
      loss = e;
      lossIsHarmless = e instanceof DeadlineException;
    }
    StoreException failure = failure(e);
    return mayHaveLostSets && !(failure instanceof StoreClosedException)
        ? new StoreConnectionException(
            failure.getMessage() + "; what was set just before may be lost", e)
        : failure;
  }

  private StoreException failure(IOException e) {
    if (isClosed()) {
      return new StoreClosedException("the store at " + server() + " was closed during a call", e);
    }
    String message = "store server at %s: %s".formatted(server(), e.getMessage());
    return e instanceof DeadlineException
        ? new StoreTimeoutException(message, e)
        : new StoreConnectionException(message, e);
  }

  void requireOpen() {
    if (isClosed()) {
      throw new StoreClosedException("the store at " + server() + " is closed");
    }
  }

  private boolean isClosed() {
    synchronized (open) {
      return closed;
    }
  }

  private void lockMain(long deadline) {
    boolean interrupted = false;
    try {
      while (true) {
        try {
          if (mainLock.tryLock()
              || mainLock.tryLock(deadline - System.nanoTime(), TimeUnit.NANOSECONDS)) {
            break;
          }
          throw new StoreTimeoutException(
              "store server at %s: other calls of this store are not answered in time"
                  .formatted(server()));
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
    try {
      requireOpen();
    } catch (StoreClosedException e) {
      mainLock.unlock();
      throw e;
    }
  }

  private TcpConnection borrow(long deadline) throws IOException {
    synchronized (open) {
      if (closed) {
        throw new StoreClosedException("the store at " + server() + " is closed");
      }
      for (TcpConnection side = idle.poll(); side != null; side = idle.poll()) {
        if (!side.isStale()) {
          return side;
        }
        open.remove(side);
        side.close();
      }
    }
    return openConnection(deadline);
  }

  private void release(TcpConnection side, boolean reusable) {
    synchronized (open) {
      if (reusable && !closed && idle.size() < MAX_IDLE) {
        idle.push(side);
        return;
      }
    }
    drop(side);
  }

  private void drop(TcpConnection connection) {
    synchronized (open) {
      open.remove(connection);
      idle.remove(connection);
    }
    connection.close();
  }

  private static long graceful(long nanos) {
    return Arguments.deadline(Math.max(nanos, GRACE_NANOS));
  }
}
