package dev.tutti.fake.simulation;

import dev.tutti.Store;
import dev.tutti.StoreClosedException;
import dev.tutti.StoreException;
import dev.tutti.StoreQueueEmptyException;
import dev.tutti.StoreSilentException;
import dev.tutti.spi.Wills;
import dev.tutti.store.table.Arguments;
import dev.tutti.store.table.KeyTable;
import dev.tutti.store.table.KeyTable.BarrierWaiter;
import dev.tutti.store.table.KeyTable.KeyWaiter;
import dev.tutti.store.table.KeyTable.PopWaiter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A handle of a simulated process to a {@link SimulatedServer}. */
final class SimulatedStore implements Store, Wills {
  /*
   * Only one thread of a world runs at a time, and none loses its turn here but by parking, so the
   * fields need no lock. Requests of one handle reach the server in the order of their calls, as on
   * a connection.
   */

  /** How long a server may take to answer beyond the time-out of a call, as with a TCP store. */
  private static final long GRACE_NANOS = 1_000_000_000;

  private final SimulatedServer server;
  private final SimulatedProcess process;
  private final Duration timeout;
  private final Set<Call<?>> calls = new LinkedHashSet<>();
  private long lastArrivalNanos;
  private boolean closed;

  SimulatedStore(SimulatedServer server, SimulatedProcess process, Duration timeout) {
    Arguments.nanos(timeout);
    this.server = server;
    this.process = process;
    this.timeout = timeout;
  }

  /** A call that has not ended. */
  private final class Call<T extends @Nullable Object> {
    private final Thread caller = Thread.currentThread();
    private boolean ended;
    private boolean abandoned;
    private @Nullable T value;
    private @Nullable RuntimeException failure;
    private Runnable cancel = () -> {};

    /** Ends the call at the server; the caller is notified later. */
    void reply(@Nullable T result, @Nullable RuntimeException cause) {
      if (!abandoned && !process.isCutOff()) {
        var _ =
            server.scheduler.at(
                server.scheduler.nowNanos() + server.delayNanos(),
                process,
                () -> {
                  value = result;
                  failure = cause;
                  ended = true;
                  LockSupport.unpark(caller);
                });
      }
    }

    /** Lets the server end the call if nothing else does. */
    void replyLate(long nanos, Supplier<RuntimeException> cause) {
      long now = server.scheduler.nowNanos();
      var timer =
          server.scheduler.at(
              now + Math.min(nanos, Long.MAX_VALUE / 4),
              server.process(),
              () -> {
                cancel.run();
                reply(null, cause.get());
              });
      Runnable before = cancel;
      cancel =
          () -> {
            server.scheduler.cancel(timer);
            before.run();
          };
    }
  }

  @SuppressWarnings("NullAway") // the value of a call that ended without a failure is its reply
  private <T extends @Nullable Object> T call(Duration limit, Consumer<Call<T>> request) {
    process.requireAlive();
    if (closed) {
      throw new StoreClosedException("the store is closed");
    }
    Call<T> call = new Call<>();
    long now = server.scheduler.nowNanos();
    lastArrivalNanos = Math.max(lastArrivalNanos + 1, now + server.delayNanos());
    if (!process.isCutOff()) {
      var _ = server.scheduler.at(lastArrivalNanos, server.process(), () -> arrive(call, request));
    }
    calls.add(call);
    try {
      await(call, now + Math.min(Arguments.nanos(limit), Long.MAX_VALUE / 4) + GRACE_NANOS);
    } finally {
      calls.remove(call);
      if (!call.ended) {
        call.abandoned = true;
        call.cancel.run();
      }
    }
    if (call.failure != null) {
      throw call.failure;
    }
    return call.value;
  }

  private <T extends @Nullable Object> void arrive(Call<T> call, Consumer<Call<T>> request) {
    try {
      request.accept(call);
    } catch (RuntimeException e) {
      call.reply(null, e);
    }
  }

  private void await(Call<?> call, long deadlineNanos) {
    while (!call.ended) {
      if (closed) {
        throw new StoreClosedException("the store was closed while a call was waiting");
      }
      if (Thread.currentThread().isInterrupted()) {
        throw new StoreException("interrupted while waiting", new InterruptedException());
      }
      long left = deadlineNanos - server.scheduler.nowNanos();
      if (left <= 0) {
        throw new StoreSilentException("the simulated store did not answer in time");
      }
      process.time().park(this, left);
    }
  }

  /** Runs a request that ends at once. */
  private <T extends @Nullable Object> T now(Supplier<T> action) {
    return call(timeout, call -> call.reply(action.get(), null));
  }

  private void run(Runnable action) {
    Boolean _ =
        now(
            () -> {
              action.run();
              return true;
            });
  }

  @Override
  public String toString() {
    return "the simulated store";
  }

  private KeyTable table() {
    return server.table;
  }

  @Override
  public Duration timeout() {
    return timeout;
  }

  @Override
  public void set(String key, byte[] value) {
    byte[] copy = Arguments.value(Arguments.key(key), value).clone();
    run(() -> table().set(key, copy));
  }

  @Override
  public byte[] get(String key, Duration limit) {
    return multiGet(List.of(Arguments.key(key)), limit).getFirst();
  }

  @Override
  public long add(String key, long delta) {
    Arguments.key(key);
    return now(() -> table().add(key, delta));
  }

  @Override
  public Swap compareSet(String key, byte @Nullable [] expected, byte[] desired) {
    Arguments.key(key);
    byte[] copy = Arguments.value(key, desired).clone();
    Swap swap = now(() -> table().compareSet(key, expected, copy));
    byte[] value = swap.value();
    return new Swap(swap.stored(), value == null ? null : value.clone());
  }

  @Override
  public void await(List<String> keys, Duration limit) {
    List<byte[]> _ = await(Arguments.keys(keys), KeyWaiter.Kind.KEY, limit);
  }

  @Override
  public List<byte[]> multiGet(List<String> keys, Duration limit) {
    return await(Arguments.keys(keys), KeyWaiter.Kind.VALUE, limit);
  }

  /** Waits for keys; returns their values, unless only their presence is asked for. */
  private List<byte[]> await(List<String> keys, KeyWaiter.Kind kind, Duration limit) {
    return call(
        limit,
        (Call<List<byte[]>> call) -> {
          Runnable answer =
              () -> {
                call.cancel.run();
                call.reply(kind == KeyWaiter.Kind.VALUE ? values(keys) : List.of(), null);
              };
          KeyWaiter waiter = new KeyWaiter(keys, kind, answer::run);
          if (table().await(waiter)) {
            answer.run();
          } else {
            call.cancel = () -> table().cancel(waiter);
            call.replyLate(
                Arguments.nanos(limit),
                () ->
                    Arguments.waitTimeout(
                        table().missing(keys, kind == KeyWaiter.Kind.VALUE), keys.size(), limit));
          }
        });
  }

  private List<byte[]> values(List<String> keys) {
    List<byte[]> values = new ArrayList<>(keys.size());
    for (String key : keys) {
      values.add(Objects.requireNonNull(table().get(key)).clone());
    }
    return values;
  }

  @Override
  public boolean check(List<String> keys) {
    List<String> all = Arguments.keys(keys);
    return now(() -> table().missing(all, false).isEmpty());
  }

  @Override
  public boolean deleteKey(String key) {
    Arguments.key(key);
    return now(() -> table().delete(key));
  }

  @Override
  public long keyCount() {
    return now(() -> (long) table().size());
  }

  @Override
  public void append(String key, byte[] value) {
    byte[] copy = Arguments.value(Arguments.key(key), value).clone();
    run(() -> table().append(key, copy));
  }

  @Override
  public void multiSet(List<String> keys, List<byte[]> values) {
    List<String> all = Arguments.keys(keys);
    Arguments.values(all, values);
    List<byte[]> copies = new ArrayList<>(values);
    copies.replaceAll(byte[]::clone);
    run(() -> table().setAll(all, copies::get));
  }

  @Override
  public void queuePush(String key, byte[] value) {
    byte[] copy = Arguments.value(Arguments.key(key), value).clone();
    run(() -> table().push(key, copy));
  }

  @Override
  public byte[] queuePop(String key, Duration limit) {
    Arguments.key(key);
    byte[] popped =
        call(
            limit,
            (Call<byte @Nullable []> call) -> {
              PopWaiter[] self = new PopWaiter[1];
              PopWaiter waiter =
                  new PopWaiter(
                      key,
                      () -> {
                        call.cancel.run();
                        call.reply(self[0].value, null);
                      });
              self[0] = waiter;
              if (Arguments.nanos(limit) <= 0) {
                call.reply(table().pop(key), null);
              } else if (table().await(waiter)) {
                call.reply(waiter.value, null);
              } else {
                call.cancel = () -> table().cancel(waiter);
                call.replyLate(Arguments.nanos(limit), () -> Arguments.popTimeout(key, limit));
              }
            });
    if (popped == null) {
      throw new StoreQueueEmptyException(Arguments.emptyMessage(key));
    }
    return popped;
  }

  @Override
  public long queueLength(String key) {
    Arguments.key(key);
    return now(() -> (long) table().length(key));
  }

  @Override
  public List<String> listKeys() {
    return now(() -> table().keys().stream().sorted().toList());
  }

  @Override
  public void barrier(String key, int size, Duration limit) {
    Arguments.key(key);
    Arguments.barrierSize(key, size);
    Boolean _ =
        call(
            limit,
            (Call<Boolean> call) -> {
              Runnable answer =
                  () -> {
                    call.cancel.run();
                    call.reply(true, null);
                  };
              BarrierWaiter waiter = new BarrierWaiter(key, size, answer::run);
              if (table().arrive(waiter)) {
                answer.run();
              } else {
                call.cancel = () -> table().leave(waiter);
                call.replyLate(
                    Arguments.nanos(limit),
                    () -> Arguments.barrierTimeout(key, table().arrived(key), size, limit));
              }
            });
  }

  @Override
  public boolean leaveWill(String log, byte[] value) {
    byte[] copy = value.clone();
    run(() -> server.leaveWill(process, log, copy));
    return true;
  }

  @Override
  public SimulatedStore duplicate() {
    process.requireAlive();
    return new SimulatedStore(server, process, timeout);
  }

  @Override
  public void close() {
    closed = true;
    calls.forEach(call -> LockSupport.unpark(call.caller));
  }
}
