package dev.tutti.store;

import dev.tutti.Store;
import dev.tutti.StoreClosedException;
import dev.tutti.StoreException;
import dev.tutti.StoreQueueEmptyException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.spi.Time;
import dev.tutti.store.table.Arguments;
import dev.tutti.store.table.KeyTable;
import dev.tutti.store.table.KeyTable.BarrierWaiter;
import dev.tutti.store.table.KeyTable.KeyWaiter;
import dev.tutti.store.table.KeyTable.PopWaiter;
import dev.tutti.store.table.WakeUp;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A store that keeps its keys in the memory of this JVM (c10d: {@code HashStore}).
 *
 * <p>Every operation takes effect at one instant between its call and its return. A write wakes
 * only the threads that wait for its key. Handles made by {@link #duplicate()} share the data; each
 * is closed separately, and the data lives as long as any of them is reachable.
 */
public final class HashStore implements Store {
  /*
   * One lock guards the table and the closed state of all handles. Each blocked call parks on a
   * condition of its own, so a wake-up reaches exactly the thread for which it is meant. What ended
   * the wait (value, deadline, close, interrupt) is decided under the lock: a value that has come
   * wins over a deadline that has passed in the meantime.
   */
  private final Shared shared;
  private final Duration timeout;
  private final Set<Parked> parked = new LinkedHashSet<>();
  private boolean closed;

  /** Creates an empty store with {@link Store#DEFAULT_TIMEOUT}. */
  public HashStore() {
    this(DEFAULT_TIMEOUT);
  }

  /**
   * Creates an empty store.
   *
   * @param timeout the deadline of calls that have none of their own
   */
  public HashStore(Duration timeout) {
    this(timeout, Time.SYSTEM);
  }

  /**
   * Creates an empty store with a clock and waits of its own.
   *
   * @param timeout the deadline of calls that have none of their own
   * @param time by which calls wait
   */
  public HashStore(Duration timeout, Time time) {
    this(new Shared(time), timeout);
  }

  private HashStore(Shared shared, Duration timeout) {
    Arguments.nanos(timeout);
    this.shared = shared;
    this.timeout = timeout;
  }

  @Override
  public Duration timeout() {
    return timeout;
  }

  @Override
  public void set(String key, byte[] value) {
    Arguments.key(key);
    byte[] copy = Arguments.value(key, value).clone();
    locked(() -> shared.table.set(key, copy));
  }

  @Override
  public byte[] get(String key, Duration timeout) {
    return multiGet(List.of(Arguments.key(key)), timeout).get(0);
  }

  @Override
  public long add(String key, long delta) {
    Arguments.key(key);
    return locked(() -> shared.table.add(key, delta));
  }

  @Override
  public Swap compareSet(String key, byte @Nullable [] expected, byte[] desired) {
    Arguments.key(key);
    byte[] copy = Arguments.value(key, desired).clone();
    Swap swap = locked(() -> shared.table.compareSet(key, expected, copy));
    byte[] value = swap.value();
    return new Swap(swap.stored(), value == null ? null : value.clone());
  }

  @Override
  public void await(List<String> keys, Duration timeout) {
    List<String> all = Arguments.keys(keys);
    locked(() -> await(all, KeyWaiter.Kind.KEY, timeout, () -> {}));
  }

  @Override
  public boolean check(List<String> keys) {
    List<String> all = Arguments.keys(keys);
    return locked(() -> shared.table.missing(all, false).isEmpty());
  }

  @Override
  public boolean deleteKey(String key) {
    Arguments.key(key);
    return locked(() -> shared.table.delete(key));
  }

  @Override
  public long keyCount() {
    return locked(() -> shared.table.size());
  }

  @Override
  public void append(String key, byte[] value) {
    Arguments.key(key);
    byte[] copy = Arguments.value(key, value).clone();
    locked(() -> shared.table.append(key, copy));
  }

  @Override
  public List<byte[]> multiGet(List<String> keys, Duration timeout) {
    List<String> all = Arguments.keys(keys);
    List<byte[]> values = new ArrayList<>(all.size());
    locked(
        () ->
            await(
                all,
                KeyWaiter.Kind.VALUE,
                timeout,
                () -> {
                  for (String key : all) {
                    values.add(Objects.requireNonNull(shared.table.get(key)));
                  }
                }));
    values.replaceAll(byte[]::clone);
    return values;
  }

  @Override
  public void multiSet(List<String> keys, List<byte[]> values) {
    List<String> all = Arguments.keys(keys);
    Arguments.values(all, values);
    List<byte[]> copies = new ArrayList<>(values);
    copies.replaceAll(byte[]::clone);
    locked(() -> shared.table.setAll(all, copies::get));
  }

  @Override
  public void queuePush(String key, byte[] value) {
    Arguments.key(key);
    byte[] copy = Arguments.value(key, value).clone();
    locked(() -> shared.table.push(key, copy));
  }

  @Override
  public byte[] queuePop(String key, Duration timeout) {
    Arguments.key(key);
    long nanos = Arguments.nanos(timeout);
    return locked(
        () -> {
          Parked self = new Parked(shared.lock.newCondition());
          PopWaiter waiter = new PopWaiter(key, self);
          if (nanos <= 0) {
            waiter.value = shared.table.pop(key);
          } else if (!shared.table.await(waiter) && !park(self, nanos)) {
            shared.table.cancel(waiter);
            throw ended(self, () -> Arguments.popTimeout(key, timeout));
          }
          byte[] value = waiter.value;
          if (value == null) {
            throw new StoreQueueEmptyException(Arguments.emptyMessage(key));
          }
          return value;
        });
  }

  @Override
  public long queueLength(String key) {
    Arguments.key(key);
    return locked(() -> shared.table.length(key));
  }

  @Override
  public List<String> listKeys() {
    return locked(() -> shared.table.keys().stream().sorted().toList());
  }

  @Override
  public void barrier(String key, int size, Duration timeout) {
    Arguments.key(key);
    Arguments.barrierSize(key, size);
    long nanos = Arguments.nanos(timeout);
    locked(
        () -> {
          Parked self = new Parked(shared.lock.newCondition());
          BarrierWaiter waiter = new BarrierWaiter(key, size, self);
          if (!shared.table.arrive(waiter) && !park(self, nanos)) {
            int arrived = shared.table.arrived(key);
            shared.table.leave(waiter);
            throw ended(self, () -> Arguments.barrierTimeout(key, arrived, size, timeout));
          }
        });
  }

  @Override
  public HashStore duplicate() {
    return locked(() -> new HashStore(shared, timeout));
  }

  @Override
  public void close() {
    shared.lock.lock();
    try {
      closed = true;
      for (Parked waiting : parked) {
        waiting.condition.signal();
      }
    } finally {
      shared.lock.unlock();
    }
  }

  /** Waits for keys, and runs an action at the instant when all of them exist. */
  private void await(
      List<String> keys, KeyWaiter.Kind kind, Duration timeout, Runnable whenPresent) {
    Parked self = new Parked(shared.lock.newCondition());
    KeyWaiter waiter =
        new KeyWaiter(
            keys,
            kind,
            () -> {
              whenPresent.run();
              self.wake();
            });
    if (shared.table.await(waiter)) {
      whenPresent.run();
    } else if (!park(self, Arguments.nanos(timeout))) {
      shared.table.cancel(waiter);
      List<String> missing = shared.table.missing(keys, kind == KeyWaiter.Kind.VALUE);
      throw ended(self, () -> Arguments.waitTimeout(missing, keys.size(), timeout));
    }
  }

  /** Waits until woken; returns false if a deadline, close or an interrupt came first. */
  private boolean park(Parked self, long nanos) {
    parked.add(self);
    try {
      long left = nanos;
      while (!self.woken && !closed && left > 0) {
        left = shared.time.await(shared.lock, self.condition, left);
      }
    } catch (InterruptedException e) {
      self.interrupt = e;
      Thread.currentThread().interrupt();
    } finally {
      parked.remove(self);
    }
    return self.woken;
  }

  private StoreException ended(Parked self, Supplier<StoreTimeoutException> late) {
    if (closed) {
      return new StoreClosedException("the store was closed while a call was waiting");
    }
    return self.interrupt != null
        ? new StoreException("interrupted while waiting", self.interrupt)
        : late.get();
  }

  private void locked(Runnable action) {
    locked(
        () -> {
          action.run();
          return true;
        });
  }

  private <T> T locked(Supplier<T> action) {
    shared.lock.lock();
    try {
      if (closed) {
        throw new StoreClosedException("the store is closed");
      }
      return action.get();
    } finally {
      shared.lock.unlock();
    }
  }

  @Override
  public String toString() {
    return "HashStore";
  }

  private static final class Shared {
    final ReentrantLock lock = new ReentrantLock();
    final KeyTable table = new KeyTable();
    final Time time;

    Shared(Time time) {
      this.time = time;
    }
  }

  private static final class Parked implements WakeUp {
    final Condition condition;
    boolean woken;
    @Nullable InterruptedException interrupt;

    Parked(Condition condition) {
      this.condition = condition;
    }

    @Override
    public void wake() {
      woken = true;
      condition.signal();
    }
  }
}
