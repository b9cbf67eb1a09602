package dev.tutti.store.table;

import dev.tutti.Store;
import dev.tutti.StoreQueueEmptyException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.store.table.KeyTable.BarrierWaiter;
import dev.tutti.store.table.KeyTable.KeyWaiter;
import dev.tutti.store.table.KeyTable.PopWaiter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * A store whose calls act on a {@link KeyTable} in this JVM; subclasses say when, and how a call
 * waits.
 */
public abstract class TableStore implements Store {
  private final Duration timeout;

  /**
   * Creates a store.
   *
   * @param timeout the deadline of calls that have none of their own
   */
  protected TableStore(Duration timeout) {
    Arguments.nanos(timeout);
    this.timeout = timeout;
  }

  /**
   * Runs an action that ends at once.
   *
   * @param limit the time allowed from now
   */
  protected abstract <T extends @Nullable Object> T now(
      Duration limit, Function<KeyTable, T> action);

  /**
   * Waits until the table has changed; if there is nothing to wait for, regardless of the limit.
   *
   * @param limit the time allowed from now
   * @param wait creates the wait, given what to call once it is over
   */
  protected abstract <T> T awaitChange(Duration limit, Function<WakeUp, Wait<T>> wait);

  /**
   * A wait for a change of a table.
   *
   * @param begin begins to wait; returns whether there is nothing to wait for
   * @param result returns the result, at the instant at which the wait is over
   * @param late returns what to throw when the time is over
   * @param cancel ends a wait that is not over
   */
  protected record Wait<T>(
      Predicate<KeyTable> begin,
      Function<KeyTable, T> result,
      Function<KeyTable, StoreTimeoutException> late,
      Consumer<KeyTable> cancel) {}

  private <T extends @Nullable Object> T now(Function<KeyTable, T> action) {
    return now(timeout, action);
  }

  private void run(Consumer<KeyTable> action) {
    Boolean _ =
        now(
            table -> {
              action.accept(table);
              return true;
            });
  }

  @Override
  public final Duration timeout() {
    return timeout;
  }

  @Override
  public final void set(String key, byte[] value) {
    Arguments.key(key);
    byte[] copy = Arguments.value(key, value).clone();
    run(table -> table.set(key, copy));
  }

  @Override
  public final byte[] get(String key, Duration limit) {
    return multiGet(List.of(Arguments.key(key)), limit).getFirst();
  }

  @Override
  public final long add(String key, long delta) {
    Arguments.key(key);
    return now(table -> table.add(key, delta));
  }

  @Override
  public final Swap compareSet(String key, byte @Nullable [] expected, byte[] desired) {
    Arguments.key(key);
    byte[] copy = Arguments.value(key, desired).clone();
    Swap swap = now(table -> table.compareSet(key, expected, copy));
    byte[] value = swap.value();
    return new Swap(swap.stored(), value == null ? null : value.clone());
  }

  @Override
  public final void await(List<String> keys, Duration limit) {
    Boolean _ = awaitKeys(Arguments.keys(keys), KeyWaiter.Kind.KEY, limit, table -> true);
  }

  @Override
  public final boolean check(List<String> keys) {
    List<String> all = Arguments.keys(keys);
    return now(table -> table.missing(all, false).isEmpty());
  }

  @Override
  public final boolean deleteKey(String key) {
    Arguments.key(key);
    return now(table -> table.delete(key));
  }

  @Override
  public final long keyCount() {
    return now(table -> (long) table.size());
  }

  @Override
  public final void append(String key, byte[] value) {
    Arguments.key(key);
    byte[] copy = Arguments.value(key, value).clone();
    run(table -> table.append(key, copy));
  }

  @Override
  public final List<byte[]> multiGet(List<String> keys, Duration limit) {
    List<String> all = Arguments.keys(keys);
    List<byte[]> values =
        awaitKeys(
            all,
            KeyWaiter.Kind.VALUE,
            limit,
            table -> {
              List<byte[]> found = new ArrayList<>(all.size());
              all.forEach(key -> found.add(Objects.requireNonNull(table.get(key))));
              return found;
            });
    values.replaceAll(byte[]::clone);
    return values;
  }

  private <T> T awaitKeys(
      List<String> keys, KeyWaiter.Kind kind, Duration limit, Function<KeyTable, T> result) {
    return awaitChange(
        limit,
        wakeUp -> {
          KeyWaiter waiter = new KeyWaiter(keys, kind, wakeUp);
          return new Wait<>(
              table -> table.await(waiter),
              result,
              table ->
                  Arguments.waitTimeout(
                      table.missing(keys, kind == KeyWaiter.Kind.VALUE), keys.size(), limit),
              table -> table.cancel(waiter));
        });
  }

  @Override
  public final void multiSet(List<String> keys, List<byte[]> values) {
    List<String> all = Arguments.keys(keys);
    Arguments.values(all, values);
    List<byte[]> copies = new ArrayList<>(values);
    copies.replaceAll(byte[]::clone);
    run(table -> table.setAll(all, copies::get));
  }

  @Override
  public final void queuePush(String key, byte[] value) {
    Arguments.key(key);
    byte[] copy = Arguments.value(key, value).clone();
    run(table -> table.push(key, copy));
  }

  @Override
  public final byte[] queuePop(String key, Duration limit) {
    Arguments.key(key);
    if (Arguments.nanos(limit) > 0) {
      return awaitChange(
          limit,
          wakeUp -> {
            PopWaiter waiter = new PopWaiter(key, wakeUp);
            return new Wait<>(
                table -> table.await(waiter),
                table -> Objects.requireNonNull(waiter.value),
                table -> Arguments.popTimeout(key, limit),
                table -> table.cancel(waiter));
          });
    }
    byte[] value = this.<byte @Nullable []>now(limit, table -> table.pop(key));
    if (value == null) {
      throw new StoreQueueEmptyException(Arguments.emptyMessage(key));
    }
    return value;
  }

  @Override
  public final long queueLength(String key) {
    Arguments.key(key);
    return now(table -> (long) table.length(key));
  }

  @Override
  public final List<String> listKeys() {
    return now(table -> table.keys().stream().sorted().toList());
  }

  @Override
  public final void barrier(String key, int size, Duration limit) {
    Arguments.key(key);
    Arguments.barrierSize(key, size);
    Boolean _ =
        awaitChange(
            limit,
            wakeUp -> {
              BarrierWaiter waiter = new BarrierWaiter(key, size, wakeUp);
              return new Wait<>(
                  table -> table.arrive(waiter),
                  table -> true,
                  table -> Arguments.barrierTimeout(key, table.arrived(key), size, limit),
                  table -> table.leave(waiter));
            });
  }
}
