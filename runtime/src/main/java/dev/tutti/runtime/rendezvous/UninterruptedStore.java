package dev.tutti.runtime.rendezvous;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.runtime.events.Events;
import dev.tutti.spi.Time;
import dev.tutti.spi.Wills;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A store whose waits are not ended by an interrupt, for calls that all ranks make together. When a
 * call returns, the thread's interrupt status is set if it was set before or became set in the
 * meantime. While a group is set up, a deadline bounds all calls, including those that wait only
 * for the server.
 */
public final class UninterruptedStore implements Store, Wills {
  private static final Events EVENTS = Events.get();

  private final Store store;
  private final Time time;
  private final @Nullable WrittenKeys written;
  private volatile @Nullable SetUp setUp;

  /**
   * The set-up whose deadline bounds the calls.
   *
   * @param group the group that is set up
   * @param rank the rank in the group
   * @param deadlineNanos the deadline, in terms of the store's clock
   * @param answer the least time that the server has for an answer
   */
  public record SetUp(String group, int rank, long deadlineNanos, Duration answer) {
    private Duration limit(Time time) {
      return StoreWait.answerBy(deadlineNanos, answer, time);
    }
  }

  /**
   * Creates a view of a store.
   *
   * @param store the store below; it is closed with this one
   * @param time by which deadlines are kept
   */
  public UninterruptedStore(Store store, Time time) {
    this(store, time, null, null);
  }

  /**
   * Creates a view of a store for the keys of a group.
   *
   * @param store the store below; it is closed with this one
   * @param time by which deadlines are kept
   * @param written notes the keys that are written through this view; null if they need not be
   * @param setUp the set-up that bounds all calls until {@link #endSetUp}; null if there is none
   */
  public UninterruptedStore(
      Store store, Time time, @Nullable WrittenKeys written, @Nullable SetUp setUp) {
    this.store = store;
    this.time = time;
    this.written = written;
    this.setUp = setUp;
  }

  /** From now on, calls are bounded only by their own deadlines. */
  public void endSetUp() {
    setUp = null;
  }

  /** Makes a call that waits, and repeats it if an interrupt ended it. */
  private <T> T wait(Duration timeout, Function<Duration, T> call) {
    boolean interrupted = Thread.interrupted();
    long deadline = time.deadline(timeout);
    SetUp bound = setUp;
    if (bound != null && bound.deadlineNanos - deadline < 0) {
      deadline = bound.deadlineNanos;
    }
    Duration left = bound == null ? timeout : time.left(deadline);
    try {
      while (true) {
        try {
          return call.apply(left);
        } catch (StoreException e) {
          if (!(e.getCause() instanceof InterruptedException)) {
            throw e;
          }
          interrupted |= Thread.interrupted();
          left = time.left(deadline);
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private void waitFor(Duration timeout, Consumer<Duration> call) {
    boolean _ =
        wait(
            timeout,
            left -> {
              call.accept(left);
              return true;
            });
  }

  /** Makes a call that waits for no other rank, once: its effect must not be repeated. */
  private <T> T call(String name, String key, Function<Store, T> call) {
    boolean interrupted = Thread.interrupted();
    Object begun = EVENTS.beginStoreCall();
    SetUp bound = setUp;
    try {
      return bound == null
          ? call.apply(store)
          : StoreWait.call(
              bound.group, bound.rank, store, bound.limit(time), time, () -> call.apply(store));
    } finally {
      if (begun != null) {
        EVENTS.endStoreCall(begun, name, key);
      }
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private void run(String name, String key, Consumer<Store> call) {
    Boolean _ =
        call(
            name,
            key,
            below -> {
              call.accept(below);
              return true;
            });
  }

  private void note(String key) {
    WrittenKeys noted = written;
    if (noted != null) {
      noted.add(store, key);
    }
  }

  private static String first(List<String> keys) {
    return keys.isEmpty() ? "" : keys.getFirst();
  }

  @Override
  public Duration timeout() {
    return store.timeout();
  }

  @Override
  public void set(String key, byte[] value) {
    run("set", key, below -> below.set(key, value));
    note(key);
  }

  @Override
  public byte[] get(String key, Duration timeout) {
    return wait(timeout, left -> store.get(key, left));
  }

  @Override
  public long add(String key, long delta) {
    long sum = call("add", key, below -> below.add(key, delta));
    note(key);
    return sum;
  }

  @Override
  public Swap compareSet(String key, byte @Nullable [] expected, byte[] desired) {
    Swap swap = call("compareSet", key, below -> below.compareSet(key, expected, desired));
    if (swap.stored()) {
      note(key);
    }
    return swap;
  }

  @Override
  public void await(List<String> keys, Duration timeout) {
    waitFor(timeout, left -> store.await(keys, left));
  }

  @Override
  public boolean check(List<String> keys) {
    return call("check", first(keys), below -> below.check(keys));
  }

  @Override
  public boolean deleteKey(String key) {
    boolean deleted = call("deleteKey", key, below -> below.deleteKey(key));
    WrittenKeys noted = written;
    if (noted != null) {
      noted.remove(store, key);
    }
    return deleted;
  }

  @Override
  public long keyCount() {
    return call("keyCount", "", Store::keyCount);
  }

  @Override
  public void append(String key, byte[] value) {
    run("append", key, below -> below.append(key, value));
    note(key);
  }

  @Override
  public List<byte[]> multiGet(List<String> keys, Duration timeout) {
    return wait(timeout, left -> store.multiGet(keys, left));
  }

  @Override
  public void multiSet(List<String> keys, List<byte[]> values) {
    run("multiSet", first(keys), below -> below.multiSet(keys, values));
    keys.forEach(this::note);
  }

  @Override
  public void queuePush(String key, byte[] value) {
    run("queuePush", key, below -> below.queuePush(key, value));
  }

  @Override
  public byte[] queuePop(String key, Duration timeout) {
    return wait(timeout, left -> store.queuePop(key, left));
  }

  @Override
  public long queueLength(String key) {
    return call("queueLength", key, below -> below.queueLength(key));
  }

  @Override
  public List<String> listKeys() {
    return call("listKeys", "", Store::listKeys);
  }

  @Override
  public void barrier(String key, int size, Duration timeout) {
    waitFor(timeout, left -> store.barrier(key, size, left));
  }

  @Override
  public boolean leaveWill(String log, byte[] value) {
    return call("leaveWill", log, below -> Wills.leave(below, log, value));
  }

  @Override
  public Store duplicate() {
    return new UninterruptedStore(store.duplicate(), time, written, null);
  }

  @Override
  public void close() {
    store.close();
  }

  @Override
  public String toString() {
    return store.toString();
  }
}
