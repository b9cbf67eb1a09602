package dev.tutti.contracts.history;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.StoreQueueEmptyException;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.contracts.history.HistoryCall.Kind;
import java.time.Duration;
import java.util.Objects;
import java.util.Random;
import org.jspecify.annotations.Nullable;

/** A client that makes random calls and records them; one thread uses it. */
final class HistoryClient implements AutoCloseable {
  static final String COUNTER = "counter";
  static final String QUEUE = "queue";

  private static final int LEAST_BYTES = 100;

  private final HistoryRun run;
  private final int number;
  private final Random random;
  private @Nullable Store store;
  private int written;
  private String register = "";
  private @Nullable String seen;

  HistoryClient(HistoryRun run, int number, long seed) {
    this.run = run;
    this.number = number;
    this.random = new Random(seed * 31 + number);
  }

  private interface Call {
    @Nullable String on(Store store);
  }

  /** Makes one random call. */
  void next() {
    int lot = random.nextInt(100);
    if (lot < 25) {
      add(1);
    } else if (lot < 40) {
      push();
    } else if (lot < 55) {
      pop();
    } else {
      useRegister(lot < 65, lot);
    }
  }

  private void useRegister(boolean large, int lot) {
    String key = run.register();
    if (!key.equals(register)) {
      register = key;
      seen = null;
    }
    String value = number + "-" + written++;
    String name = large ? value + "*" + length() : value;
    HistoryCall call =
        switch (lot % 10) {
          case 0, 1, 2 -> set(name);
          case 3, 4, 5 -> get(register);
          case 9 -> delete();
          default -> compareSet(random.nextInt(4) == 0 ? null : seen, name);
        };
    if (call.isAnswered()) {
      seen =
          switch (call.kind()) {
            case SET -> name;
            case DELETE -> null;
            default -> call.result();
          };
    }
  }

  /** Returns a random length, of which many are short. */
  private int length() {
    double part = random.nextDouble();
    return LEAST_BYTES + (int) ((run.mostBytes() - LEAST_BYTES) * part * part * part);
  }

  /** Adds to the counter. */
  HistoryCall add(int delta) {
    String value = Integer.toString(delta);
    return record(Kind.ADD, COUNTER, null, value, open -> Long.toString(open.add(COUNTER, delta)));
  }

  private void push() {
    String value = number + "-" + written++;
    record(
        Kind.PUSH,
        QUEUE,
        null,
        value,
        open -> {
          open.queuePush(QUEUE, HistoryValue.bytes(value));
          return confirmed(open);
        });
  }

  /** Pops a value if there is one. */
  HistoryCall pop() {
    return record(
        Kind.POP,
        QUEUE,
        null,
        null,
        open -> {
          try {
            return HistoryValue.name(open.queuePop(QUEUE, Duration.ZERO));
          } catch (StoreQueueEmptyException e) {
            return null;
          }
        });
  }

  private HistoryCall set(String value) {
    return record(
        Kind.SET,
        register,
        null,
        value,
        open -> {
          open.set(register, HistoryValue.bytes(value));
          return confirmed(open);
        });
  }

  /** Lets a call follow that is answered, if the store does not answer the one before. */
  private @Nullable String confirmed(Store open) {
    if (!run.acknowledges()) {
      var _ = open.check(QUEUE);
    }
    return null;
  }

  /** Reads a register. */
  HistoryCall get(String key) {
    return record(
        Kind.GET,
        key,
        null,
        null,
        open -> {
          try {
            return HistoryValue.name(open.get(key, Duration.ZERO));
          } catch (StoreSilentException e) {
            throw e;
          } catch (StoreTimeoutException e) {
            return null;
          }
        });
  }

  private HistoryCall delete() {
    return record(
        Kind.DELETE, register, null, null, open -> Boolean.toString(open.deleteKey(register)));
  }

  private HistoryCall compareSet(@Nullable String expected, String value) {
    return record(
        Kind.COMPARE_SET,
        register,
        expected,
        value,
        open -> {
          Store.Swap swap =
              open.compareSet(
                  register,
                  expected == null ? null : HistoryValue.bytes(expected),
                  HistoryValue.bytes(value));
          String after = HistoryValue.name(swap.value());
          return swap.stored() == value.equals(after) ? after : "%s, but %s".formatted(after, swap);
        });
  }

  private HistoryCall record(
      Kind kind, String key, @Nullable String expected, @Nullable String value, Call call) {
    Store open = open();
    long invoked = run.time().nanoTime();
    String result = null;
    long returned = HistoryCall.NEVER;
    try {
      result = call.on(open);
      returned = run.time().nanoTime();
    } catch (StoreException e) {
      close();
    }
    return run.add(new HistoryCall(number, kind, key, expected, value, result, invoked, returned));
  }

  private Store open() {
    while (store == null) {
      try {
        store = run.open();
      } catch (StoreException e) {
        run.requireTime(e);
      }
    }
    return Objects.requireNonNull(store);
  }

  @Override
  public void close() {
    if (store != null) {
      store.close();
      store = null;
    }
  }
}
