package dev.tutti.fake.simulation;

import dev.tutti.StoreClosedException;
import dev.tutti.StoreException;
import dev.tutti.StoreSilentException;
import dev.tutti.spi.Wills;
import dev.tutti.store.table.Arguments;
import dev.tutti.store.table.KeyTable;
import dev.tutti.store.table.TableStore;
import dev.tutti.store.table.WakeUp;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A handle of a simulated process to a {@link SimulatedServer}. */
final class SimulatedStore extends TableStore implements Wills {
  /*
   * Only one thread of a world runs at a time, and none loses its turn here but by parking, so the
   * fields need no lock. Requests of one handle reach the server in the order of their calls, as on
   * a connection.
   */

  /** How long a server may take to answer beyond the time-out of a call, as with a TCP store. */
  private static final long GRACE_NANOS = 1_000_000_000;

  private final SimulatedServer server;
  private final SimulatedProcess process;
  private final Set<Call<?>> calls = new LinkedHashSet<>();
  private long lastArrivalNanos;
  private boolean closed;

  SimulatedStore(SimulatedServer server, SimulatedProcess process, Duration timeout) {
    super(timeout);
    this.server = server;
    this.process = process;
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
                RuntimeException late = cause.get();
                cancel.run();
                reply(null, late);
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

  @Override
  protected <T extends @Nullable Object> T now(Duration limit, Function<KeyTable, T> action) {
    return call(limit, call -> call.reply(action.apply(server.table), null));
  }

  @Override
  protected <T> T awaitChange(Duration limit, Function<WakeUp, Wait<T>> made) {
    return call(limit, (Call<T> call) -> begin(call, limit, made));
  }

  private <T> void begin(Call<T> call, Duration limit, Function<WakeUp, Wait<T>> made) {
    KeyTable table = server.table;
    Runnable[] answer = new Runnable[1];
    Wait<T> wait = made.apply(() -> answer[0].run());
    answer[0] =
        () -> {
          call.cancel.run();
          call.reply(wait.result().apply(table), null);
        };
    if (wait.begin().test(table)) {
      answer[0].run();
    } else {
      call.cancel = () -> wait.cancel().accept(table);
      call.replyLate(Arguments.nanos(limit), () -> wait.late().apply(table));
    }
  }

  @Override
  public String toString() {
    return "the simulated store";
  }

  @Override
  public boolean leaveWill(String log, byte[] value) {
    byte[] copy = value.clone();
    return now(
        timeout(),
        table -> {
          server.leaveWill(process, log, copy);
          return true;
        });
  }

  @Override
  public SimulatedStore duplicate() {
    process.requireAlive();
    return new SimulatedStore(server, process, timeout());
  }

  @Override
  public void close() {
    closed = true;
    calls.forEach(call -> LockSupport.unpark(call.caller));
  }
}
