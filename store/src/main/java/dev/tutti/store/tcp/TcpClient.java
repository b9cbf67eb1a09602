package dev.tutti.store.tcp;

import dev.tutti.StoreClosedException;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTokenException;
import dev.tutti.spi.Time;
import dev.tutti.store.table.Arguments;
import dev.tutti.store.table.Locks;
import java.io.EOFException;
import java.io.IOException;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Sends requests to one store server on behalf of one {@link TcpStore}. */
final class TcpClient implements AutoCloseable {
  /*
   * The main connection carries every call that the server answers at once, one at a time, in the
   * order of the calls. A thread therefore sees what another thread of this client wrote before,
   * even though PyTorch's protocol does not acknowledge a set. A call that may have to wait for
   * other ranks takes a side connection for itself while it waits (SideWait). Side connections are
   * opened when needed, and a few are kept for later; there is no other limit, since a limit would
   * let one waiting call stall another.
   *
   * A connection on which an error occurred is closed: a late reply must not be taken for the reply
   * to another request. The next call reconnects if the server is certain to be the same one: a
   * Tutti server shows this by its instance number, any other server only if the loss was this
   * client's own doing. A restarted server has lost its keys, and that must not go unnoticed.
   *
   * Devices on the network path may drop a connection that has been idle for a long time. A
   * connection that has been idle is therefore checked before it is used again, where that loses
   * nothing.
   */
  /** How long a server may take to answer, however short the time-out of a call. */
  static final long GRACE_NANOS = TimeUnit.SECONDS.toNanos(1);

  private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(5);
  private static final long LONGEST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(10);

  /** More than the length of a server's answer about its capabilities. */
  private static final int LONGEST_ANSWER = 4096;

  private static final String OTHER =
      ", as a Gloo rank or another server that is not a store would";

  /** How long a server may close connections instead of answering the handshake. */
  private static final long CLOSING_NANOS = TimeUnit.SECONDS.toNanos(10);

  private final ConnectionPool pool;
  private final Time time;
  private final long timeoutNanos;
  private final byte[] nonce = new byte[Wire.NAME_BYTES];
  private final ReentrantLock mainLock = new ReentrantLock();
  private @Nullable TcpConnection main;
  private @Nullable Throwable loss;
  private boolean lossIsHarmless;
  private boolean unanswered;
  private String capability = "";
  private long idleNanos = IDLE_NANOS;
  private long usedAt;

  private TcpClient(ConnectionPool pool, long timeoutNanos) {
    this.pool = pool;
    this.time = pool.time();
    this.timeoutNanos = timeoutNanos;
    ByteBuffer.wrap(nonce).putLong(time.random()).putLong(time.random());
  }

  /** Sends requests and reads their replies. */
  interface Exchange<T extends @Nullable Object> {
    T run(TcpConnection connection, long deadline) throws IOException;
  }

  /** Adds a request. */
  interface Request {
    void put(SendQueue out);
  }

  /** Connects, retrying with growing pauses until the deadline. */
  static TcpClient connect(TcpStoreOptions server, Consumer<String> failedAttempts) {
    TcpClient client = new TcpClient(new ConnectionPool(server), Arguments.nanos(server.timeout()));
    client.connect(failedAttempts);
    return client;
  }

  private void connect(Consumer<String> failedAttempts) {
    long deadline = Arguments.deadline(time, timeoutNanos);
    long pause = FIRST_PAUSE_NANOS;
    int refusals = 0;
    long closingUntil = 0;
    @Nullable IOException reason = null;
    for (int attempt = 1; ; attempt++) {
      long began = time.nanoTime();
      try {
        main = openMain(deadline);
        usedAt = time.nanoTime();
        return;
      } catch (IOException e) {
        long now = time.nanoTime();
        if (e instanceof RefusedException refused) {
          closingUntil = refusals++ == 0 ? now + CLOSING_NANOS : closingUntil;
          if (!refused.mayPass || now - closingUntil >= 0) {
            throw failure(e);
          }
        } else {
          refusals = 0;
        }
        if (e instanceof ForeignServerException) {
          throw new StoreException(
              "no store server at %s: %s".formatted(server(), e.getMessage()), e);
        }
        // An attempt that began just before the deadline says less than earlier ones.
        boolean cut = e instanceof DeadlineException && now - began < LONGEST_PAUSE_NANOS;
        reason = cut && reason != null ? reason : e;
        failedAttempts.accept(reason.toString());
        long left = deadline - now;
        if (left <= 0 && reason instanceof RefusedException) {
          throw failure(reason);
        }
        if (left <= 0) {
          throw new StoreConnectionException(
              "no store server at %s within %d ms, %d %s: %s"
                  .formatted(
                      server(),
                      TimeUnit.NANOSECONDS.toMillis(timeoutNanos),
                      attempt,
                      attempt == 1 ? "attempt" : "attempts",
                      reason),
              reason);
        }
        long jittered = pause / 2 + Math.floorMod(time.random(), pause);
        time.park(this, Math.min(left, jittered));
        if (Thread.currentThread().isInterrupted()) {
          throw new StoreException(
              "interrupted while connecting to the store server at " + server(),
              new InterruptedException());
        }
        pause = Math.min(LONGEST_PAUSE_NANOS, pause * 2);
      }
    }
  }

  /** Opens a main connection and queries the server's capabilities. */
  private TcpConnection openMain(long deadline) throws IOException {
    TcpConnection connection = pool.open(deadline);
    try {
      RemoteReads.putRead(connection.out, Wire.CAPABILITY, nonce);
      connection.send(deadline);
      byte[] answer = firstAnswer(connection, deadline);
      String found =
          Arrays.equals(answer, nonce) ? "" : new String(answer, StandardCharsets.US_ASCII);
      if (found.equals(Wire.TOKEN_NEEDED)) {
        throw new TokenException(
            "it requires a token, but this process has none; " + TokenException.SAME, false);
      }
      if (loss == null) {
        capability = found;
      } else if (!found.equals(capability)) {
        throw new IOException("the store server was restarted and has lost its keys");
      }
      return connection;
    } catch (IOException e) {
      pool.drop(connection);
      throw e;
    }
  }

  /** Reads the server's capabilities, or finds that it is not a store server. */
  private byte[] firstAnswer(TcpConnection connection, long deadline) throws IOException {
    try {
      long length = connection.readLong(deadline);
      if (length < 0 || length > LONGEST_ANSWER) {
        throw ForeignServerException.of(length);
      }
      return connection.readBytes(length, deadline);
    } catch (EOFException | SocketException e) {
      if (connection.hasAlert()) {
        throw ForeignServerException.ofTls();
      }
      throw loss != null ? e : new EOFException("the server there closed the connection" + OTHER);
    } catch (DeadlineException e) {
      throw loss != null
          ? e
          : new DeadlineException(
              "the server there accepted the connection but did not answer in time" + OTHER);
    }
  }

  /** Returns whether the server supports Tutti's own queries. */
  boolean isTutti() {
    return capability.startsWith(Wire.CAPABILITY_VERSION + ' ');
  }

  /** Returns bytes that no value has, so that a COMPARE_SET with them only reads. */
  byte[] nonce() {
    return nonce;
  }

  Time time() {
    return time;
  }

  ConnectionPool pool() {
    return pool;
  }

  String server() {
    return pool.name();
  }

  /** Runs an exchange on the main connection, with the store's own deadline. */
  <T extends @Nullable Object> T call(Exchange<T> exchange) {
    return call(timeoutNanos, exchange);
  }

  /** Runs an exchange on the main connection; a server gets at least a second. */
  <T extends @Nullable Object> T call(long nanos, Exchange<T> exchange) {
    long deadline = graceful(nanos);
    lockMain(deadline);
    try {
      T result = exchange.run(main(deadline), deadline);
      unanswered = false;
      return result;
    } catch (IOException e) {
      throw lost(e);
    } catch (RuntimeException | Error e) {
      loseMain(e);
      throw e;
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
      unanswered = true;
      request.put(connection.out);
      connection.send(deadline);
    } catch (IOException e) {
      throw lost(e);
    } catch (RuntimeException | Error e) {
      loseMain(e);
      throw e;
    } finally {
      mainLock.unlock();
    }
  }

  /** Sends a query with a key and a value that has no reply. */
  void send(int query, String key, byte[] value) {
    send(
        out -> {
          out.putQuery(query, key);
          out.putBytes(value);
        });
  }

  /** Sends a query with a key, and returns the number in the reply. */
  long ask(long nanos, int query, String key) {
    return call(
        nanos,
        (connection, deadline) -> {
          connection.out.putQuery(query, key);
          connection.send(deadline);
          return connection.readLong(deadline);
        });
  }

  /** Ensures that the server has executed all requests so far, if one of them had no reply. */
  void syncIfUnanswered(long nanos) {
    lockMain(graceful(nanos));
    boolean needed = unanswered;
    mainLock.unlock();
    if (needed) {
      sync(nanos);
    }
  }

  private void sync(long nanos) {
    call(
        nanos,
        (connection, deadline) -> {
          putSync(connection.out);
          connection.send(deadline);
          return connection.readByte(deadline);
        });
  }

  /** Adds a request that changes nothing and that every server answers with one byte. */
  static void putSync(SendQueue out) {
    out.putByte((byte) Wire.CHECK);
    out.putLong(0);
  }

  /** Allows the next call to reconnect even though the server cannot show that it is the same. */
  void forgiveLoss() {
    lockMain(graceful(timeoutNanos));
    lossIsHarmless = true;
    mainLock.unlock();
  }

  /**
   * Finds out on a separate connection whether the server supports a query; a server that does not
   * support it drops that connection.
   *
   * @param nanos the time-out; a server gets at least a second
   * @param request the query; must not change anything
   * @param reply reads the reply
   */
  boolean knows(long nanos, Request request, Exchange<?> reply) {
    long deadline = graceful(nanos);
    TcpConnection probe = openSide(deadline);
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
      sync(deadline - time.nanoTime());
      return false;
    } finally {
      pool.drop(probe);
    }
  }

  private TcpConnection openSide(long deadline) {
    try {
      return pool.open(deadline);
    } catch (IOException e) {
      throw failure(e);
    }
  }

  /**
   * Takes a side connection; the caller must return it to the pool. A server gets at least a
   * second.
   */
  TcpConnection borrow(long nanos) {
    pool.requireOpen();
    try {
      return pool.borrow(graceful(nanos));
    } catch (IOException e) {
      throw failure(e);
    }
  }

  /** Closes all connections; the second and later calls have no effect. */
  @Override
  public void close() {
    pool.close();
  }

  /** Sets the time after which the main connection counts as idle. */
  void idleAfter(long nanos) {
    idleNanos = nanos;
  }

  private TcpConnection main(long deadline) throws IOException {
    long now = time.nanoTime();
    boolean idle = now - usedAt >= idleNanos;
    usedAt = now;
    if (idle && main != null && isTutti() && !unanswered && main.isStale()) {
      loseMain(new EOFException("the connection was closed while idle"));
    }
    TcpConnection connection = main;
    if (connection == null) {
      Throwable lost = loss;
      if (lost != null && !isTutti() && !lossIsHarmless) {
        throw new IOException("the connection was lost earlier: " + lost.getMessage(), lost);
      }
      connection = openAgain(deadline);
      main = connection;
    }
    return connection;
  }

  /**
   * Reopens the main connection after a loss; a server that is late still counts as the same one.
   */
  private TcpConnection openAgain(long deadline) throws IOException {
    try {
      TcpConnection connection = openMain(deadline);
      lossIsHarmless = false;
      return connection;
    } catch (IOException e) {
      lossIsHarmless &= e instanceof DeadlineException;
      throw e;
    }
  }

  private StoreException lost(IOException e) {
    boolean mayHaveLostSets = loseMain(e);
    String refusal = refusal(e);
    StoreException failure =
        refusal.isEmpty()
            ? failure(e)
            : new StoreException(
                "store server at %s refused a request: %s".formatted(server(), refusal), e);
    if (!mayHaveLostSets || failure instanceof StoreClosedException) {
      return failure;
    }
    String withSets = failure.getMessage() + "; values set just before may be lost";
    return switch (failure) {
      case StoreSilentException _ -> new StoreSilentException(withSets, e);
      case StoreConnectionException _ -> new StoreConnectionException(withSets, e);
      default -> new StoreException(withSets, e);
    };
  }

  /**
   * Queries the server why it dropped the main connection; returns an empty text if it did not, or
   * does not say so within a second.
   */
  private String refusal(IOException loss) {
    if (!isTutti() || loss instanceof DeadlineException || loss instanceof RefusedException) {
      return "";
    }
    long deadline = graceDeadline();
    try {
      TcpConnection connection = pool.open(deadline);
      try {
        RemoteReads.putRead(connection.out, Wire.REFUSAL, nonce);
        connection.send(deadline);
        byte[] answer = connection.readBytes(deadline);
        return Arrays.equals(answer, nonce) ? "" : new String(answer, StandardCharsets.UTF_8);
      } finally {
        pool.drop(connection);
      }
    } catch (IOException e) {
      loss.addSuppressed(e);
      return "";
    }
  }

  /** Gives up the main connection; returns whether it had unanswered requests. */
  private boolean loseMain(Throwable why) {
    TcpConnection connection = main;
    boolean lostRequests = unanswered && connection != null;
    main = null;
    unanswered = false;
    if (connection != null) {
      pool.drop(connection);
      loss = why;
      lossIsHarmless = !(why instanceof IOException) || why instanceof DeadlineException;
    }
    return lostRequests;
  }

  /** Creates the exception for a failure of a connection. */
  StoreException failure(IOException e) {
    if (pool.isClosed()) {
      return new StoreClosedException("the store at " + server() + " was closed during a call", e);
    }
    String message = "store server at %s: %s".formatted(server(), e.getMessage());
    if (e instanceof TokenException) {
      return new StoreTokenException(message, e);
    }
    return e instanceof DeadlineException
        ? new StoreSilentException(message, e)
        : new StoreConnectionException(message, e);
  }

  private void lockMain(long deadline) {
    if (!Locks.acquire(time, mainLock, deadline)) {
      throw new StoreSilentException(
          "store server at %s: other calls of this store were not answered in time"
              .formatted(server()));
    }
    if (pool.isClosed()) {
      mainLock.unlock();
      pool.requireOpen();
    }
  }

  long graceDeadline() {
    return Arguments.deadline(time, GRACE_NANOS);
  }

  /** Returns a deadline that gives a server at least a second. */
  long graceful(long nanos) {
    return Arguments.deadline(time, Math.max(nanos, GRACE_NANOS));
  }
}
