package dev.tutti.aeron;

import dev.tutti.QueueEmptyException;
import dev.tutti.Store;
import dev.tutti.StoreClosedException;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.StoreTokenException;
import dev.tutti.store.internal.Arguments;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Talks to a store server over Aeron: through shared memory on the server's host, over UDP from
 * others.
 *
 * <p>Calls run on the caller's thread and take one round trip each; waits are ended by the server
 * the moment when what they wait for is there. {@link #multiSet} and {@link #multiGet} take effect
 * at one instant; one call takes at most 256 MiB. All stores of a process for one server share one
 * session, and no call stalls another. The keys live as long as the server's process: when that
 * ends, each call fails at once, and within the lease if its host is lost.
 */
public final class AeronStore implements Store {
  private static final Logger LOG = System.getLogger(AeronStore.class.getName());
  private static final long CLOSE_NANOS = TimeUnit.SECONDS.toNanos(2);
  private static final long CLOSE_PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

  private final AeronStoreOptions options;
  private final Link link;
  private final @Nullable AeronStoreServer server;
  private final List<Long> wills = new CopyOnWriteArrayList<>();
  private final Set<Call> blocked = ConcurrentHashMap.newKeySet();
  private volatile boolean closed;

  /**
   * Connects to a server, after starting it if this process serves; tries again with growing pauses
   * until the deadline.
   *
   * @param options where and how
   * @throws StoreConnectionException if the port to serve on is in use, or there is no server by
   *     the deadline
   * @throws StoreTokenException if this process and the server do not have the same token
   * @throws StoreException if there is no shared memory, or this JVM does not let Aeron use it
   */
  public AeronStore(AeronStoreOptions options) {
    this(options, AeronStoreServer.DEFAULT_CLIENTS);
  }

  /** Connects to a server; if this process serves, there must be room for so many clients. */
  AeronStore(AeronStoreOptions options, int clients) {
    this.server = options.server() ? new AeronStoreServer(options, null, clients) : null;
    this.options =
        server == null
            ? options
            : new AeronStoreOptions(
                "127.0.0.1",
                server.port(),
                false,
                options.timeout(),
                options.token(),
                options.transport(),
                options.directory(),
                options.driver(),
                options.lease(),
                options.spin());
    try {
      JvmFlags.require();
      this.link = Links.take(this.options);
    } catch (RuntimeException e) {
      if (server != null) {
        server.close();
      }
      throw e;
    }
  }

  /**
   * Connects to a server with the settings of the environment.
   *
   * @param host name or address of the host that serves
   * @param port the port
   */
  public AeronStore(String host, int port) {
    this(AeronStoreOptions.of(host, port));
  }

  private AeronStore(AeronStoreOptions options, Link link) {
    this.options = options;
    this.link = link;
    this.server = null;
  }

  /** Returns the port of the server. */
  public int port() {
    return options.port();
  }

  /** Tells whether calls go through shared memory. */
  public boolean isShared() {
    return link.isShared();
  }

  /** Tells whether calls sleep until the server rings. */
  boolean sleeps() {
    return link.sleeps();
  }

  /** Returns the folder of the driver that this store uses. */
  String driver() {
    return link.driver();
  }

  @Override
  public Duration timeout() {
    return options.timeout();
  }

  @Override
  public void set(String key, byte[] value) {
    put(Protocol.SET, key, value);
  }

  @Override
  public byte[] get(String key, Duration timeout) {
    return multiGet(List.of(Arguments.key(key)), timeout).get(0);
  }

  @Override
  public long add(String key, long delta) {
    Arguments.key(key);
    return ask(
            Protocol.ADD,
            body -> {
              body.putText(key);
              body.putLong(delta);
            })
        .readLong();
  }

  @Override
  public Swap compareSet(String key, byte @Nullable [] expected, byte[] desired) {
    Arguments.key(key);
    Arguments.value(key, desired);
    if (expected != null) {
      Arguments.value(key, expected);
    }
    BodyReader reply =
        ask(
            Protocol.SWAP,
            body -> {
              body.putText(key);
              body.putOptional(expected);
              body.putBytes(desired);
            });
    return reply.readByte() != 0
        ? new Swap(true, desired.clone())
        : new Swap(false, reply.readOptional());
  }

  @Override
  public void wait(List<String> keys, Duration timeout) {
    awaitKeys(Protocol.WAIT, keys, timeout);
  }

  @Override
  public boolean check(List<String> keys) {
    List<String> all = Arguments.keys(keys);
    return ask(Protocol.CHECK, body -> body.putTexts(all)).readLong() != 0;
  }

  @Override
  public boolean deleteKey(String key) {
    return number(Protocol.DELETE, Arguments.key(key)) != 0;
  }

  @Override
  public long keyCount() {
    return ask(Protocol.COUNT, body -> {}).readLong();
  }

  @Override
  public void append(String key, byte[] value) {
    put(Protocol.APPEND, key, value);
  }

  @Override
  public List<byte[]> multiGet(List<String> keys, Duration timeout) {
    return awaitKeys(Protocol.FETCH, keys, timeout).readAllBytes();
  }

  @Override
  public void multiSet(List<String> keys, List<byte[]> values) {
    List<String> all = Arguments.keys(keys);
    Arguments.values(all, values);
    ask(
        Protocol.MULTI_SET,
        body -> {
          body.putTexts(all);
          body.putInt(values.size());
          values.forEach(body::putBytes);
        });
  }

  @Override
  public void queuePush(String key, byte[] value) {
    put(Protocol.PUSH, key, value);
  }

  @Override
  public byte[] queuePop(String key, Duration timeout) {
    Arguments.key(key);
    Call call = await(Protocol.POP, timeout, body -> body.putText(key));
    if (call.code() != Protocol.MISSING) {
      return call.body().readBytes();
    }
    if (Arguments.nanos(timeout) <= 0) {
      throw new QueueEmptyException(Arguments.emptyMessage(key));
    }
    throw new StoreTimeoutException(Arguments.popMessage(key, timeout));
  }

  @Override
  public long queueLength(String key) {
    return number(Protocol.LENGTH, Arguments.key(key));
  }

  @Override
  public List<String> listKeys() {
    List<String> keys = ask(Protocol.LIST, body -> {}).readAllTexts();
    Collections.sort(keys);
    return List.copyOf(keys);
  }

  @Override
  public void barrier(String key, int size, Duration timeout) {
    Arguments.key(key);
    Arguments.barrierSize(key, size);
    Call call =
        await(
            Protocol.BARRIER,
            timeout,
            body -> {
              body.putInt(size);
              body.putText(key);
            });
    if (call.code() == Protocol.MISSING) {
      int arrived = (int) call.body().readLong();
      throw new StoreTimeoutException(Arguments.barrierMessage(key, arrived, size, timeout));
    }
  }

  @Override
  public boolean leaveWill(String log, byte[] value) {
    Arguments.key(log);
    Arguments.value(log, value);
    BodyReader reply =
        ask(
            Protocol.WILL,
            body -> {
              body.putText(log);
              body.putBytes(value);
            });
    wills.add(reply.readLong());
    return true;
  }

  private void withdrawWills() {
    try {
      for (Long will : wills) {
        ask(Protocol.WITHDRAW, 0, body -> body.putLong(will));
      }
    } catch (StoreException e) {
      LOG.log(Level.DEBUG, "the server is gone, and with it all wills", e);
    }
  }

  @Override
  public AeronStore duplicate() {
    requireOpen();
    if (link.retain()) {
      return new AeronStore(options, link);
    }
    throw closedException();
  }

  /** Closes this handle, and the server if this store started it. */
  @Override
  public void close() {
    synchronized (this) {
      if (closed) {
        return;
      }
      if (!wills.isEmpty()) {
        withdrawWills();
      }
      closed = true;
    }
    for (Call call : blocked) {
      call.close();
      LockSupport.unpark(call.thread);
    }
    // Those calls still ask the server what became of them.
    long deadline = System.nanoTime() + CLOSE_NANOS;
    while (!blocked.isEmpty() && deadline - System.nanoTime() > 0) {
      LockSupport.parkNanos(CLOSE_PAUSE_NANOS);
    }
    link.release();
    if (server != null) {
      server.close();
    }
  }

  @Override
  public String toString() {
    return "AeronStore[" + link.server() + (isShared() ? ", shared memory]" : ", UDP]");
  }

  private long number(int code, String key) {
    return ask(code, body -> body.putText(key)).readLong();
  }

  private void put(int code, String key, byte[] value) {
    Arguments.key(key);
    Arguments.value(key, value);
    ask(
        code,
        body -> {
          body.putText(key);
          body.putBytes(value);
        });
  }

  private BodyReader awaitKeys(int code, List<String> keys, Duration timeout) {
    List<String> all = Arguments.keys(keys);
    Call call = await(code, timeout, body -> body.putTexts(all));
    BodyReader reply = call.body();
    if (call.code() == Protocol.MISSING) {
      throw new StoreTimeoutException(Arguments.waitMessage(reply.readKeys(), all.size(), timeout));
    }
    return reply;
  }

  /** Runs a call that the server answers at once. */
  private BodyReader ask(int code, Link.Request request) {
    return ask(code, Arguments.nanos(options.timeout()), request);
  }

  private BodyReader ask(int code, long nanos, Link.Request request) {
    requireOpen();
    Call call = link.newCall();
    try {
      long deadline = graceful(nanos);
      link.send(code, call, deadline, request);
      if (!link.await(call, deadline, false)) {
        throw link.unanswered();
      }
      return checked(call).body();
    } finally {
      link.forget(call);
    }
  }

  /** Runs a call that may have to wait for others. */
  private Call await(int code, Duration timeout, Link.Request request) {
    requireOpen();
    long nanos = Arguments.nanos(timeout);
    long deadline = Arguments.deadline(nanos);
    boolean now = nanos <= 0;
    Call call = link.newCall();
    blocked.add(call);
    try {
      link.send(
          code,
          call,
          graceful(nanos),
          body -> {
            body.putByte(now ? 1 : 0);
            request.put(body);
          });
      if (!link.await(call, now ? graceful(0) : deadline, !now)) {
        giveUp(call, now);
      }
      return checked(call);
    } finally {
      blocked.remove(call);
      link.forget(call);
    }
  }

  /** Asks the server what became of a call that does not go on; what has come is the outcome. */
  private void giveUp(Call call, boolean now) {
    boolean interrupted = Thread.currentThread().isInterrupted();
    if (!now) {
      long deadline = graceful(0);
      link.send(Protocol.CANCEL, call, deadline, body -> {});
      if (link.await(call, deadline, false) && call.code() != Protocol.MISSING) {
        return;
      }
    }
    if (closed) {
      throw closedException();
    }
    if (interrupted) {
      throw new StoreException("interrupted while waiting", new InterruptedException());
    }
    if (!call.isDone()) {
      throw link.unanswered();
    }
  }

  private static long graceful(long nanos) {
    return Arguments.deadline(Math.max(nanos, Link.GRACE_NANOS));
  }

  private static Call checked(Call call) {
    if (call.code() == Protocol.FAILED) {
      throw new StoreException(call.body().readText());
    }
    return call;
  }

  private void requireOpen() {
    if (closed) {
      throw closedException();
    }
  }

  private StoreClosedException closedException() {
    return new StoreClosedException("the store at " + link.server() + " is closed");
  }
}
