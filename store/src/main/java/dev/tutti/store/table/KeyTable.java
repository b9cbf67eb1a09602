package dev.tutti.store.table;

import dev.tutti.Store;
import dev.tutti.StoreException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.IntFunction;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Holds keys, queues and barriers, and the waiters for them.
 *
 * <p>Not thread-safe: a lock or a single thread guards each table. Arrays are kept and returned
 * without copying and must not be written afterwards.
 */
public final class KeyTable {
  /*
   * Each waiter is registered under every key that it misses, so a write touches only the waiters
   * for its key. A waiter whose last missing key appears checks all its keys again before it wakes:
   * a key seen earlier may have been deleted since, in which case the waiter continues to wait.
   *
   * A push hands its value to the longest waiting pop, if there is one, and the queue stays empty.
   * Otherwise it wakes every waiter that only looks, but at most one that will pop afterwards
   * (CONSUMER, which is what a blocking pop of c10d looks like): a second one would find the queue
   * empty. A waiter that still misses another key does not wake and does not count.
   */
  private static final int KEY_BYTES = 128;
  private static final int QUEUED_BYTES = 32;

  private final long most;
  private long bytes;
  private final Map<String, byte[]> values = new HashMap<>();
  private final Map<String, ArrayDeque<byte[]>> queues = new HashMap<>();
  private final Map<String, Set<KeyWaiter>> keyWaiters = new HashMap<>();
  private final Map<String, Set<PopWaiter>> popWaiters = new HashMap<>();
  private final Map<String, Barrier> barriers = new HashMap<>();

  /** Creates a table without a size limit. */
  public KeyTable() {
    this(Long.MAX_VALUE);
  }

  /**
   * Creates a table.
   *
   * @param most the maximum number of bytes of keys and values
   */
  public KeyTable(long most) {
    this.most = most;
  }

  public byte @Nullable [] get(String key) {
    return values.get(key);
  }

  /**
   * Sets a value.
   *
   * @throws StoreException if the table may not hold the value; the table is then unchanged
   */
  public void set(String key, byte[] value) {
    set(key, value, most);
  }

  /** Sets a value even if the table then holds more than it may. */
  public void setBeyondLimit(String key, byte[] value) {
    set(key, value, Long.MAX_VALUE);
  }

  /**
   * Sets several values; of equal keys, the last one counts.
   *
   * @throws StoreException if the table may not hold them all; the table is then unchanged
   */
  public void setAll(List<String> keys, IntFunction<byte[]> value) {
    Map<String, byte[]> last = LinkedHashMap.newLinkedHashMap(keys.size());
    for (int i = 0; i < keys.size(); i++) {
      last.put(keys.get(i), value.apply(i));
    }
    long more = 0;
    for (Map.Entry<String, byte[]> each : last.entrySet()) {
      more += growth(each.getKey(), each.getValue());
    }
    if (more > 0 && more > most - bytes) {
      throw tooMuch(keys.getFirst(), more);
    }
    last.forEach(this::setBeyondLimit);
  }

  private long growth(String key, byte[] value) {
    byte[] old = values.get(key);
    return value.length - (old == null ? -(long) cost(key) : old.length);
  }

  private void set(String key, byte[] value, long limit) {
    long more = growth(key, value);
    if (more > 0 && more > limit - bytes) {
      throw tooMuch(key, more);
    }
    values.put(key, value);
    bytes += more;
    Set<KeyWaiter> waiters = keyWaiters.remove(key);
    if (waiters != null) {
      for (KeyWaiter waiter : waiters) {
        appeared(waiter);
      }
    }
  }

  public long add(String key, long delta) {
    byte[] old = values.get(key);
    long sum = old == null ? delta : Decimal.add(key, old, delta);
    set(key, Decimal.format(sum));
    return sum;
  }

  public Store.Swap compareSet(String key, byte @Nullable [] expected, byte[] desired) {
    byte[] old = values.get(key);
    if (Arguments.same(old, expected)) {
      set(key, desired);
      return new Store.Swap(true, desired);
    }
    return new Store.Swap(false, old);
  }

  /**
   * Returns the number of the key at which the next entry of a log is to be set, as {@code Wills}
   * says.
   *
   * @param least a number such that no entry below it is to be set
   */
  public long nextOf(String log, long least) {
    byte[] first = values.get(log + "first");
    String text =
        first == null
            ? ""
            : new String(first, StandardCharsets.UTF_8).lines().findFirst().orElse("");
    long number = Math.max(least, text.matches("\\d{1,18}") ? Long.parseLong(text) : 1);
    while (values.containsKey(log + number)) {
      number++;
    }
    return number;
  }

  public boolean delete(String key) {
    byte[] old = values.remove(key);
    if (old == null) {
      return false;
    }
    bytes -= cost(key) + old.length;
    return true;
  }

  /** Removes the values and queues of the matching keys. */
  public void forget(Predicate<String> keys) {
    List.copyOf(values.keySet()).stream().filter(keys).forEach(this::delete);
    List.copyOf(queues.keySet()).stream().filter(keys).forEach(this::forgetQueue);
  }

  private void forgetQueue(String key) {
    ArrayDeque<byte[]> queue = Objects.requireNonNull(queues.remove(key));
    bytes -= cost(key);
    queue.forEach(value -> bytes -= QUEUED_BYTES + value.length);
  }

  public int size() {
    return values.size();
  }

  public Collection<String> keys() {
    return values.keySet();
  }

  /** Returns the queues that hold values. */
  public Collection<String> queues() {
    return queues.keySet();
  }

  /** Returns the values of a queue, first value first. */
  public Collection<byte[]> queued(String key) {
    ArrayDeque<byte[]> queue = queues.get(key);
    return queue == null ? List.of() : queue;
  }

  public void append(String key, byte[] value) {
    byte[] old = values.get(key);
    set(key, old == null ? value : Arguments.concat(key, old, value));
  }

  public boolean exists(String key) {
    return values.containsKey(key) || queues.containsKey(key);
  }

  public List<String> missing(Collection<String> keys, boolean valuesOnly) {
    List<String> missing = new ArrayList<>();
    for (String key : keys) {
      if (valuesOnly ? !values.containsKey(key) : !exists(key)) {
        missing.add(key);
      }
    }
    return missing;
  }

  /** Returns how many of the given keys have no waiter. */
  public int countUnawaited(Collection<String> keys) {
    int count = 0;
    for (String key : keys) {
      count += keyWaiters.containsKey(key) ? 0 : 1;
    }
    return count;
  }

  /** Registers a waiter unless all its keys exist; returns whether they do. */
  public boolean await(KeyWaiter waiter) {
    waiter.missing = 0;
    for (String key : missing(waiter.keys, waiter.kind == KeyWaiter.Kind.VALUE)) {
      if (keyWaiters.computeIfAbsent(key, k -> new LinkedHashSet<>()).add(waiter)) {
        waiter.missing++;
      }
    }
    return waiter.missing == 0;
  }

  public void cancel(KeyWaiter waiter) {
    for (String key : waiter.keys) {
      unregister(keyWaiters, key, waiter);
    }
  }

  public void push(String key, byte[] value) {
    Set<PopWaiter> pops = popWaiters.get(key);
    if (pops != null) {
      PopWaiter first = pops.iterator().next();
      unregister(popWaiters, key, first);
      first.value = value;
      first.wakeUp.wake();
      return;
    }
    ArrayDeque<byte[]> queue = queues.get(key);
    long more = (long) QUEUED_BYTES + value.length + (queue == null ? cost(key) : 0);
    if (more > most - bytes) {
      throw tooMuch(key, more);
    }
    if (queue == null) {
      queue = new ArrayDeque<>();
      queues.put(key, queue);
    }
    queue.add(value);
    bytes += more;
    Set<KeyWaiter> waiters = keyWaiters.get(key);
    if (waiters == null) {
      return;
    }
    boolean consumerWoken = false;
    for (KeyWaiter waiter : List.copyOf(waiters)) {
      boolean consumer = waiter.kind == KeyWaiter.Kind.CONSUMER;
      boolean passed = waiter.kind == KeyWaiter.Kind.VALUE || (consumer && consumerWoken);
      if (!passed && unregister(keyWaiters, key, waiter)) {
        consumerWoken |= appeared(waiter) && consumer;
      }
    }
  }

  public byte @Nullable [] pop(String key) {
    ArrayDeque<byte[]> queue = queues.get(key);
    if (queue == null) {
      return null;
    }
    byte[] value = queue.remove();
    bytes -= QUEUED_BYTES + value.length;
    if (queue.isEmpty()) {
      queues.remove(key);
      bytes -= cost(key);
    }
    return value;
  }

  public int length(String key) {
    ArrayDeque<byte[]> queue = queues.get(key);
    return queue == null ? 0 : queue.size();
  }

  /** Registers a pop unless its queue has a value; returns whether the pop has got one. */
  public boolean await(PopWaiter waiter) {
    waiter.value = pop(waiter.key);
    if (waiter.value != null) {
      return true;
    }
    popWaiters.computeIfAbsent(waiter.key, k -> new LinkedHashSet<>()).add(waiter);
    return false;
  }

  public void cancel(PopWaiter waiter) {
    unregister(popWaiters, waiter.key, waiter);
  }

  /**
   * Joins a barrier, and wakes the others if this is its last member.
   *
   * @return whether the barrier is complete
   * @throws StoreException if the members already there came with another size
   */
  public boolean arrive(BarrierWaiter waiter) {
    Barrier barrier = barriers.computeIfAbsent(waiter.key, k -> new Barrier(waiter.size));
    if (barrier.size != waiter.size) {
      throw new StoreException(Arguments.sizeMessage(waiter.key, barrier.size, waiter.size));
    }
    if (barrier.arrived.size() + 1 < barrier.size) {
      barrier.arrived.add(waiter);
      return false;
    }
    barriers.remove(waiter.key);
    for (BarrierWaiter other : barrier.arrived) {
      other.wakeUp.wake();
    }
    return true;
  }

  /** Returns how many members are waiting at a barrier. */
  public int arrived(String key) {
    Barrier barrier = barriers.get(key);
    return barrier == null ? 0 : barrier.arrived.size();
  }

  /** Returns the number of members of a barrier at which a member is waiting, or else 0. */
  public int barrierSize(String key) {
    Barrier barrier = barriers.get(key);
    return barrier == null ? 0 : barrier.size;
  }

  public void leave(BarrierWaiter waiter) {
    Barrier barrier = barriers.get(waiter.key);
    if (barrier != null && barrier.arrived.remove(waiter) && barrier.arrived.isEmpty()) {
      barriers.remove(waiter.key);
    }
  }

  private static int cost(String key) {
    return KEY_BYTES + key.length();
  }

  private StoreException tooMuch(String key, long more) {
    return new StoreException(
        ("this server holds %d bytes of keys and values and would need %d more for '%s'; its limit"
                + " is %d, three eighths of its heap (-Xmx)")
            .formatted(bytes, more, Arguments.shorten(key), most));
  }

  /**
   * Counts a key for which a waiter waits; returns whether it was the last one, which wakes the
   * waiter.
   */
  private boolean appeared(KeyWaiter waiter) {
    if (--waiter.missing == 0 && await(waiter)) {
      waiter.wakeUp.wake();
      return true;
    }
    return false;
  }

  private static <W> boolean unregister(Map<String, Set<W>> waiters, String key, W waiter) {
    Set<W> registered = waiters.get(key);
    if (registered == null || !registered.remove(waiter)) {
      return false;
    }
    if (registered.isEmpty()) {
      waiters.remove(key);
    }
    return true;
  }

  /** A waiter for keys. */
  public static final class KeyWaiter {
    /** What counts as an existing key, and what happens after the wait. */
    public enum Kind {
      /** Waits for values, not for queues. */
      VALUE,
      /** Waits for values or non-empty queues. */
      KEY,
      /** As {@link #KEY}, and may pop afterwards. */
      CONSUMER
    }

    final Collection<String> keys;
    final Kind kind;
    final WakeUp wakeUp;
    private int missing;

    public KeyWaiter(Collection<String> keys, Kind kind, WakeUp wakeUp) {
      this.keys = keys;
      this.kind = kind;
      this.wakeUp = wakeUp;
    }
  }

  /** A waiter for a value of a queue. */
  public static final class PopWaiter {
    public final String key;
    final WakeUp wakeUp;
    public byte @Nullable [] value;

    public PopWaiter(String key, WakeUp wakeUp) {
      this.key = key;
      this.wakeUp = wakeUp;
    }
  }

  /** A waiter at a barrier. */
  public static final class BarrierWaiter {
    public final String key;
    final int size;
    final WakeUp wakeUp;

    public BarrierWaiter(String key, int size, WakeUp wakeUp) {
      this.key = key;
      this.size = size;
      this.wakeUp = wakeUp;
    }
  }

  private static final class Barrier {
    final int size;
    final Set<BarrierWaiter> arrived = new LinkedHashSet<>();

    Barrier(int size) {
      this.size = size;
    }
  }
}
