package dev.tutti.store;

import dev.tutti.Store;
import dev.tutti.StoreClosedException;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.spi.Time;
import dev.tutti.store.table.Arguments;
import dev.tutti.store.table.KeyTable;
import dev.tutti.store.table.TableStore;
import dev.tutti.store.table.WakeUp;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A store that keeps its keys in the memory of this JVM (c10d: {@code HashStore}).
 *
 * <p>Every operation takes effect at one instant between its call and its return. A write wakes
 * only the threads that wait for its key. Handles made by {@link #duplicate()} share the data; each
 * is closed separately, and the data lives as long as any of them is reachable.
 */
public final class HashStore extends TableStore {
  /*
   * One lock guards the table and the closed state of all handles. Each blocked call parks on a
   * condition of its own, so a wake-up reaches exactly the thread for which it is meant. What ended
   * the wait (value, deadline, close, interrupt) is decided under the lock: a value that has come
   * wins over a deadline that has passed in the meantime.
   */
  private final Shared shared;
  private final Set<Parked<?>> parked = new LinkedHashSet<>();
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
    super(timeout);
    this.shared = shared;
  }

  @Override
  public HashStore duplicate() {
    return locked(() -> new HashStore(shared, timeout()));
  }

  @Override
  public void close() {
    shared.lock.lock();
    try {
      closed = true;
      for (Parked<?> waiting : parked) {
        waiting.condition.signal();
      }
    } finally {
      shared.lock.unlock();
    }
  }

  @Override
  protected <T extends @Nullable Object> T now(Duration limit, Function<KeyTable, T> action) {
    return locked(() -> action.apply(shared.table));
  }

  @Override
  protected <T> T awaitChange(Duration limit, Function<WakeUp, Wait<T>> made) {
    long nanos = Arguments.nanos(limit);
    return locked(
        () -> {
          Parked<T> self = new Parked<>(shared);
          Wait<T> wait = made.apply(self);
          self.wait = wait;
          if (wait.begin().test(shared.table)) {
            return wait.result().apply(shared.table);
          }
          if (!park(self, nanos)) {
            StoreTimeoutException late = wait.late().apply(shared.table);
            wait.cancel().accept(shared.table);
            throw ended(self, late);
          }
          return Objects.requireNonNull(self.result);
        });
  }

  /** Waits until woken; returns false if a deadline, close or an interrupt came first. */
  private boolean park(Parked<?> self, long nanos) {
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

  private StoreException ended(Parked<?> self, StoreTimeoutException late) {
    if (closed) {
      return new StoreClosedException("the store was closed while a call was waiting");
    }
    return self.interrupt != null
        ? new StoreException("interrupted while waiting", self.interrupt)
        : late;
  }

  private <T extends @Nullable Object> T locked(Supplier<T> action) {
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

  private static final class Parked<T> implements WakeUp {
    final Condition condition;
    private final KeyTable table;
    @Nullable Wait<T> wait;
    boolean woken;
    @Nullable T result;
    @Nullable InterruptedException interrupt;

    Parked(Shared shared) {
      this.condition = shared.lock.newCondition();
      this.table = shared.table;
    }

    @Override
    public void wake() {
      result = Objects.requireNonNull(wait).result().apply(table);
      woken = true;
      condition.signal();
    }
  }
}
