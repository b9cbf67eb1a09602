package dev.tutti.store.tcp;

import dev.tutti.Store;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreQueueEmptyException;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.StoreTokenException;
import dev.tutti.store.table.Arguments;
import dev.tutti.store.table.Decimal;
import dev.tutti.store.table.KeyText;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A client of a store server over TCP (c10d: {@code TCPStore}), either Tutti's or that of PyTorch
 * 2.2 and newer.
 *
 * <p>Calls run on the caller's thread and take one round trip each; {@link #set}, {@link #multiSet}
 * and {@link #queuePush} take none, because the protocol does not acknowledge them: a failure shows
 * in the next call. All threads share one connection for calls that the server answers at once; a
 * call that has to wait for other ranks uses another connection in the meantime. A server gets a
 * second to answer, or the time-out of the call if that is longer.
 *
 * <p>With a PyTorch server, {@link #compareSet} is exact as long as no other client stores the very
 * value that is desired; queues need its event-loop server of version 2.8 or newer, and {@link
 * #listKeys} needs 2.10; the maximum key length is one byte less; the key count includes the state
 * of barriers.
 */
public final class TcpStore implements Store {
  /** Well below the maximum that a server accepts in one request. */
  private static final long MULTI_SET_BYTES = 64L << 20;

  private final TcpStoreOptions options;
  private final TcpClient client;
  private final ServerDialect dialect;
  private final @Nullable TcpStoreServer server;

  /**
   * Connects to a server, after starting it if this process serves; retries with growing pauses
   * until the deadline.
   *
   * @param options the server, and how to connect to it
   * @throws StoreConnectionException if the port to serve on is in use, or there is no server by
   *     the deadline
   * @throws StoreTokenException if this process and the server do not have the same token
   * @throws StoreTimeoutException if this process serves and not all processes have joined by the
   *     deadline
   */
  public TcpStore(TcpStoreOptions options) {
    this(options, failedAttempt -> {});
  }

  /** Does the same, and says why attempts to reach the server fail. */
  TcpStore(TcpStoreOptions options, Consumer<String> failedAttempts) {
    long deadline = Arguments.deadline(options.time(), Arguments.nanos(options.timeout()));
    TcpStoreServer started = options.server() ? new TcpStoreServer(options) : null;
    TcpClient connected = null;
    try {
      this.options = options;
      this.server = started;
      TcpStoreOptions toServer = started == null ? options : options.ofClient(started.port());
      connected = TcpClient.connect(toServer, failedAttempts);
      this.client = connected;
      this.dialect =
          client.isTutti() ? new TuttiServerDialect(client) : new C10dServerDialect(client);
      if (options.waitForWorkers() && options.worldSize() > 0) {
        addTo(Wire.INIT_KEY, 1);
        if (started != null) {
          started.awaitWorkers(options.worldSize(), deadline, options.timeout());
        }
      }
    } catch (RuntimeException e) {
      if (connected != null) {
        connected.close();
      }
      if (started != null) {
        started.close();
      }
      throw e;
    }
  }

  /**
   * Connects to a server with c10d's defaults.
   *
   * @param host the name or address of the host that serves
   * @param port the port
   */
  public TcpStore(String host, int port) {
    this(TcpStoreOptions.of(host, port));
  }

  /** Returns the port of the server. */
  public int port() {
    return client.pool().port();
  }

  /** Returns how many connections are open. */
  int connections() {
    return client.pool().size();
  }

  /** Sets the time after which an idle connection is checked before its next use. */
  void idleAfter(Duration idle) {
    client.idleAfter(idle.toNanos());
  }

  @Override
  public Duration timeout() {
    return options.timeout();
  }

  @Override
  public void set(String key, byte[] value) {
    String wireKey = wire(key);
    Arguments.value(key, value);
    client.send(Wire.SET, wireKey, value);
  }

  @Override
  public byte[] get(String key, Duration timeout) {
    return multiGet(List.of(Arguments.key(key)), timeout).get(0);
  }

  @Override
  public long add(String key, long delta) {
    String wireKey = wire(key);
    try {
      return addTo(wireKey, delta);
    } catch (StoreException e) {
      // The protocol has no reply for a value to which it cannot add: the server drops the client.
      byte[] value = valueAfterDrop(wireKey, e);
      if (value != null) {
        Decimal.add(key, value, delta);
      }
      throw e;
    }
  }

  private long addTo(String wireKey, long delta) {
    return client.call(
        (connection, deadline) -> {
          connection.out.putQuery(Wire.ADD, wireKey);
          connection.out.putLong(delta);
          connection.send(deadline);
          return connection.readLong(deadline);
        });
  }

  @Override
  public Swap compareSet(String key, byte @Nullable [] expected, byte[] desired) {
    String wireKey = wire(key);
    Arguments.value(key, desired);
    if (expected != null) {
      Arguments.value(key, expected);
    }
    Swap swap = dialect.compareSet(wireKey, expected, desired);
    return swap.stored() ? new Swap(true, desired.clone()) : swap;
  }

  @Override
  public void await(List<String> keys, Duration timeout) {
    List<String> wireKeys = wire(keys);
    long nanos = Arguments.nanos(timeout);
    long deadline = Arguments.deadline(options.time(), nanos);
    if (RemoteReads.check(client, wireKeys, nanos)) {
      return;
    }
    if (nanos > 0 && dialect.look(wireKeys, deadline - options.time().nanoTime())) {
      return;
    }
    List<String> missing = RemoteReads.missing(client, wireKeys, 0);
    if (!missing.isEmpty()) {
      throw Arguments.waitTimeout(user(missing), keys.size(), timeout);
    }
  }

  @Override
  public boolean check(List<String> keys) {
    return RemoteReads.check(client, wire(keys), Arguments.nanos(timeout()));
  }

  @Override
  public boolean deleteKey(String key) {
    String wireKey = wire(key);
    return client.ask(Arguments.nanos(timeout()), Wire.DELETE_KEY, wireKey) > 0;
  }

  @Override
  public long keyCount() {
    return client.call(
        (connection, deadline) -> {
          connection.out.putByte((byte) Wire.GET_NUM_KEYS);
          connection.out.putQuery(Wire.CHECK, List.of(Wire.INIT_KEY));
          connection.send(deadline);
          long all = connection.readLong(deadline);
          return connection.readByte(deadline) == Wire.READY ? all - 1 : all;
        });
  }

  @Override
  public void append(String key, byte[] value) {
    String wireKey = wire(key);
    Arguments.value(key, value);
    try {
      client.call(
          (connection, deadline) -> {
            connection.out.putQuery(Wire.APPEND, wireKey);
            connection.out.putBytes(value);
            TcpClient.putSync(connection.out);
            connection.send(deadline);
            return connection.readByte(deadline);
          });
    } catch (StoreException e) {
      byte[] old = valueAfterDrop(wireKey, e);
      if (old != null) {
        Arguments.requireRoom(key, old, value);
      }
      throw e;
    }
  }

  @Override
  public List<byte[]> multiGet(List<String> keys, Duration timeout) {
    List<String> wireKeys = wire(keys);
    long nanos = Arguments.nanos(timeout);
    long deadline = Arguments.deadline(options.time(), nanos);
    List<byte @Nullable []> values = RemoteReads.values(client, wireKeys, nanos);
    List<String> missing = withoutValue(wireKeys, values);
    Iterator<byte[]> fetched =
        missing.isEmpty()
            ? Collections.emptyIterator()
            : fetch(missing, keys.size(), timeout, deadline).iterator();
    List<byte[]> all = new ArrayList<>(values.size());
    for (byte[] value : values) {
      all.add(value == null ? fetched.next() : value);
    }
    return all;
  }

  /** Waits for the values of keys that had none at first. */
  private List<byte[]> fetch(List<String> wireKeys, int all, Duration timeout, long deadline) {
    List<String> missing = wireKeys;
    if (Arguments.nanos(timeout) > 0) {
      List<byte[]> values = dialect.fetch(wireKeys, deadline - options.time().nanoTime());
      if (values != null) {
        return values;
      }
      List<byte @Nullable []> last = RemoteReads.values(client, wireKeys, 0);
      values = RemoteReads.complete(last);
      if (values != null) {
        return values;
      }
      missing = withoutValue(wireKeys, last);
    }
    throw Arguments.waitTimeout(user(missing), all, timeout);
  }

  private static List<String> withoutValue(List<String> wireKeys, List<byte @Nullable []> values) {
    List<String> missing = new ArrayList<>();
    for (int i = 0; i < values.size(); i++) {
      if (values.get(i) == null) {
        missing.add(wireKeys.get(i));
      }
    }
    return missing;
  }

  @Override
  public void multiSet(List<String> keys, List<byte[]> values) {
    List<String> wireKeys = wire(keys);
    Arguments.values(keys, values);
    for (int start = 0, next = 0; start < wireKeys.size(); start = next) {
      long bytes = 0;
      while (next < wireKeys.size() && bytes < MULTI_SET_BYTES) {
        bytes += values.get(next++).length;
      }
      int first = start;
      int end = next;
      client.send(
          out -> {
            out.putByte((byte) Wire.MULTI_SET);
            out.putLong(end - first);
            for (int i = first; i < end; i++) {
              out.putKey(wireKeys.get(i));
              out.putBytes(values.get(i));
            }
          });
    }
  }

  @Override
  public void queuePush(String key, byte[] value) {
    String wireKey = wire(key);
    Arguments.value(key, value);
    dialect.requireQueues(TcpConnection.IO_NANOS);
    client.send(Wire.QUEUE_PUSH, wireKey, value);
  }

  @Override
  public byte[] queuePop(String key, Duration timeout) {
    String wireKey = wire(key);
    long nanos = Arguments.nanos(timeout);
    long deadline = Arguments.deadline(options.time(), nanos);
    dialect.requireQueues(nanos);
    byte[] value = RemoteReads.popInTime(client, wireKey, deadline - options.time().nanoTime());
    if (value == null && nanos <= 0) {
      throw new StoreQueueEmptyException(Arguments.emptyMessage(key));
    }
    if (value == null) {
      value = dialect.take(wireKey, deadline - options.time().nanoTime());
    }
    if (value == null) {
      throw Arguments.popTimeout(key, timeout);
    }
    return value;
  }

  @Override
  public long queueLength(String key) {
    String wireKey = wire(key);
    dialect.requireQueues(TcpConnection.IO_NANOS);
    return client.ask(Arguments.nanos(timeout()), Wire.QUEUE_LENGTH, wireKey);
  }

  @Override
  public List<String> listKeys() {
    dialect.requireListing();
    List<String> keys =
        client.call(
            (connection, deadline) -> {
              connection.out.putByte((byte) Wire.LIST_KEYS);
              connection.send(deadline);
              long count = connection.readLong(deadline);
              List<String> found = new ArrayList<>();
              for (long i = 0; i < count; i++) {
                byte[] key = connection.readBytes(deadline);
                if (key.length > 1 && key[0] == KeyText.PREFIX) {
                  found.add(new String(key, 1, key.length - 1, StandardCharsets.UTF_8));
                }
              }
              return found;
            });
    Collections.sort(keys);
    return List.copyOf(keys);
  }

  @Override
  public void barrier(String key, int size, Duration timeout) {
    String wireKey = wire(key);
    Arguments.barrierSize(key, size);
    int arrived = dialect.barrier(wireKey, size, Arguments.nanos(timeout));
    if (arrived > 0) {
      throw Arguments.barrierTimeout(key, arrived, size, timeout);
    }
  }

  @Override
  public TcpStore duplicate() {
    client.pool().requireOpen();
    return new TcpStore(options.ofClient(port()));
  }

  /** Closes the connections, and the server if this store started it. */
  @Override
  public void close() {
    client.close();
    if (server != null) {
      server.close();
    }
  }

  @Override
  public String toString() {
    return "TcpStore[" + client.server() + "]";
  }

  /**
   * Returns the value of a key after the server has dropped this client; null if it cannot be
   * determined.
   */
  private byte @Nullable [] valueAfterDrop(String wireKey, StoreException drop) {
    if (drop instanceof StoreSilentException) {
      return null;
    }
    try {
      client.forgiveLoss();
      return RemoteReads.value(client, wireKey, TcpConnection.IO_NANOS);
    } catch (StoreException e) {
      drop.addSuppressed(e);
      return null;
    }
  }

  private String wire(String key) {
    String wireKey = KeyText.PREFIX + Arguments.key(key);
    dialect.requireKey(wireKey);
    return wireKey;
  }

  private List<String> wire(List<String> keys) {
    List<String> wireKeys = new ArrayList<>(keys.size());
    for (String key : Arguments.keys(keys)) {
      wireKeys.add(wire(key));
    }
    return wireKeys;
  }

  private static List<String> user(List<String> wireKeys) {
    return wireKeys.stream().map(key -> key.substring(1)).toList();
  }
}
