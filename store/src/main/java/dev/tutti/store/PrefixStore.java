package dev.tutti.store;

import dev.tutti.Store;
import dev.tutti.StoreClosedException;
import dev.tutti.StoreException;
import dev.tutti.spi.Wills;
import dev.tutti.store.table.Arguments;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A view of the part of a store whose keys start with a prefix and a slash (c10d: {@code
 * PrefixStore}).
 *
 * <p>Key {@code k} here is key {@code prefix/k} in the store below, so a prefix that ends with a
 * slash results in a double slash, as in c10d. Closing this store ends the calls that wait through
 * it and leaves the store below open; only a store below that was made by {@link #duplicate()} is
 * closed with its owner.
 */
public final class PrefixStore implements Store, Wills {
  /*
   * The store below does not record which caller uses which prefix. close() therefore interrupts the
   * threads that are blocked through this store. Each thread registers itself under the lock before
   * it blocks and deregisters under the lock afterwards, so an interrupt of close() never reaches a
   * thread that is past its call. A call that finds the store closed when it deregisters clears
   * close's interrupt from its thread.
   */
  private final String prefix;
  private final Store store;
  private final boolean owner;
  private final Object lock = new Object();
  private final Set<Blocked> blocked = new HashSet<>();
  private volatile boolean closed;

  /**
   * Creates a view of a store.
   *
   * @param prefix the prefix of the keys below, without the slash; must not be empty
   * @param store the store below; stays open when this one is closed
   */
  public PrefixStore(String prefix, Store store) {
    this(prefix, store, false);
  }

  private PrefixStore(String prefix, Store store, boolean owner) {
    this.prefix = Arguments.key(prefix);
    this.store = Objects.requireNonNull(store, "store");
    this.owner = owner;
  }

  /** Returns the prefix, without the slash. */
  public String prefix() {
    return prefix;
  }

  /** Returns the store below. */
  public Store store() {
    return store;
  }

  @Override
  public Duration timeout() {
    return store.timeout();
  }

  @Override
  public void set(String key, byte[] value) {
    open().set(below(key), value);
  }

  @Override
  public byte[] get(String key, Duration timeout) {
    return blocking(() -> store.get(below(key), timeout));
  }

  @Override
  public long add(String key, long delta) {
    return open().add(below(key), delta);
  }

  @Override
  public Swap compareSet(String key, byte @Nullable [] expected, byte[] desired) {
    return open().compareSet(below(key), expected, desired);
  }

  @Override
  public void await(List<String> keys, Duration timeout) {
    blocking(
        () -> {
          store.await(below(keys), timeout);
          return true;
        });
  }

  @Override
  public boolean check(List<String> keys) {
    return open().check(below(keys));
  }

  @Override
  public boolean deleteKey(String key) {
    return open().deleteKey(below(key));
  }

  @Override
  public long keyCount() {
    return open().keyCount();
  }

  @Override
  public void append(String key, byte[] value) {
    open().append(below(key), value);
  }

  @Override
  public List<byte[]> multiGet(List<String> keys, Duration timeout) {
    return blocking(() -> store.multiGet(below(keys), timeout));
  }

  @Override
  public void multiSet(List<String> keys, List<byte[]> values) {
    open().multiSet(below(keys), values);
  }

  @Override
  public void queuePush(String key, byte[] value) {
    open().queuePush(below(key), value);
  }

  @Override
  public byte[] queuePop(String key, Duration timeout) {
    return blocking(() -> store.queuePop(below(key), timeout));
  }

  @Override
  public boolean leaveWill(String log, byte[] value) {
    return Wills.leave(open(), below(log), value);
  }

  @Override
  public long queueLength(String key) {
    return open().queueLength(below(key));
  }

  @Override
  public List<String> listKeys() {
    String start = prefix + "/";
    return open().listKeys().stream()
        .filter(key -> key.startsWith(start) && key.length() > start.length())
        .map(key -> key.substring(start.length()))
        .toList();
  }

  @Override
  public void barrier(String key, int size, Duration timeout) {
    blocking(
        () -> {
          store.barrier(below(key), size, timeout);
          return true;
        });
  }

  @Override
  public PrefixStore duplicate() {
    return new PrefixStore(prefix, open().duplicate(), true);
  }

  @Override
  public void close() {
    synchronized (lock) {
      if (closed) {
        return;
      }
      closed = true;
      for (Blocked call : blocked) {
        call.interrupted = true;
        call.thread.interrupt();
      }
    }
    if (owner) {
      store.close();
    }
  }

  @Override
  public String toString() {
    return store + "/" + prefix;
  }

  private String below(String key) {
    return prefix + '/' + Arguments.key(key);
  }

  private List<String> below(List<String> keys) {
    List<String> below = new ArrayList<>(keys.size());
    for (String key : keys) {
      below.add(below(key));
    }
    return below;
  }

  private Store open() {
    if (closed) {
      throw closedException(null);
    }
    return store;
  }

  private <T> T blocking(Supplier<T> call) {
    Blocked self = new Blocked(Thread.currentThread());
    synchronized (lock) {
      open();
      blocked.add(self);
    }
    try {
      return call.get();
    } catch (StoreException e) {
      if (closed) {
        throw closedException(e);
      }
      throw e;
    } finally {
      synchronized (lock) {
        blocked.remove(self);
        if (self.interrupted) {
          Thread.interrupted();
        }
      }
    }
  }

  private StoreClosedException closedException(@Nullable Throwable cause) {
    return new StoreClosedException("the prefix store '" + prefix + "' is closed", cause);
  }

  private static final class Blocked {
    final Thread thread;
    boolean interrupted;

    Blocked(Thread thread) {
      this.thread = thread;
    }
  }
}
