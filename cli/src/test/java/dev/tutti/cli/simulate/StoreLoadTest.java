package dev.tutti.cli.simulate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Store;
import dev.tutti.store.HashStore;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class StoreLoadTest {
  private final LongAdder calls = new LongAdder();
  private final LongAdder keys = new LongAdder();
  private final LongAdder bytes = new LongAdder();

  /** Returns a store that counts calls, their keys and the bytes that they read. */
  private Store counting(Store store) {
    return (Store)
        Proxy.newProxyInstance(
            Store.class.getClassLoader(),
            new Class<?>[] {Store.class},
            (_, method, arguments) -> {
              Object result;
              try {
                result = method.invoke(store, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
              if (result instanceof Store duplicate) {
                return counting(duplicate);
              }
              if (isCounted(method.getName())) {
                calls.increment();
                keys.add(arguments[0] instanceof List<?> list ? list.size() : 1);
                count(result);
              }
              return result;
            });
  }

  /** Returns whether a call counts; a rank looks more often while others are late. */
  private static boolean isCounted(String method) {
    return !List.of("timeout", "close", "duplicate", "check", "await").contains(method);
  }

  private void count(Object result) {
    if (result instanceof byte[] value) {
      bytes.add(value.length);
    } else if (result instanceof List<?> values) {
      values.forEach(this::count);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {8, 66})
  void realRanksCallAsOftenAsTheModelSays(int size) throws Exception {
    Store store = counting(new HashStore());
    CyclicBarrier joined = new CyclicBarrier(size + 1);
    List<FutureTask<Integer>> ranks = new ArrayList<>();
    CyclicBarrier counted = new CyclicBarrier(size + 1);
    for (int i = 0; i < size; i++) {
      int rank = i;
      ranks.add(new FutureTask<>(() -> join(store, rank, size, List.of(joined, counted))));
      Thread.ofPlatform().daemon().start(ranks.getLast());
    }
    joined.await();
    double calls = this.calls.sum();
    double keys = this.keys.sum();
    double bytes = this.bytes.sum();
    counted.await();
    for (int i = 0; i < size; i++) {
      assertThat(ranks.get(i).get()).isEqualTo(i);
    }
    StoreLoad model = StoreLoad.joining(size, Networks.of(size, size));
    double looks = size * (size < 64 ? 2.0 : 4);
    double keysOfLooks = size * (size < 64 ? 2.0 : 2.0 * size + 2);
    assertThat(calls / (model.calls() - looks)).as("calls: %s", calls).isCloseTo(1, within(0.05));
    assertThat(keys / (model.keys() - keysOfLooks)).as("keys: %s", keys).isCloseTo(1, within(0.05));
    assertThat(bytes / model.bytes()).as("bytes: %s", bytes).isCloseTo(1, within(0.15));
  }

  /** Joins, leaves once all have joined and their calls are counted, and returns the rank. */
  private static int join(Store store, int rank, int size, List<CyclicBarrier> meetings)
      throws Exception {
    GroupOptions options =
        GroupOptions.DEFAULT
            .withBackend("gloo")
            .withStore(store)
            .withRank(rank)
            .withSize(size)
            .withSetting("TUTTI_GLOO_SHARED_BYTES", "0")
            .withTimeout(Duration.ofMinutes(2));
    try (ProcessGroup _ = ProcessGroup.init(options)) {
      for (CyclicBarrier meeting : meetings) {
        meeting.await();
      }
    }
    return rank;
  }

  private static void assertMillis(StoreLoad load, double millis) {
    assertThat(load.seconds() * 1e3).isCloseTo(millis, within(1e-6));
  }

  @Test
  void joiningTakesAsLongAsWhoeverIsBusier() {
    // 20 ranks on 10 cores: twice 3 ms.
    assertMillis(StoreLoad.joining(20, Networks.of(20, 10)), 6);
    // 1024 ranks on cores of their own: 16 calls of 16 µs and 5,130 keys of 1 µs for each.
    assertMillis(StoreLoad.joining(1024, Networks.of(8, 8)), 1024 * (16 * 0.016 + 5.13));
  }

  @Test
  void theLastOfManyThatWaitWaitsForAll() {
    assertMillis(StoreLoad.wake(1, Networks.of(1, 8)), 0.32);
    assertMillis(StoreLoad.wake(64, Networks.of(8, 8)), 0.3 + 64 * 0.024);
    // 11 connections, of 0.1 ms each, end on two ranks of each core.
    assertMillis(StoreLoad.failure(64, Networks.of(16, 8)), 0.3 + 64 * 0.024 + 2 * 1.1);
    assertMillis(StoreLoad.failure(8, Networks.of(8, 8)), 0.3 + 8 * 0.02 + 0.7);
  }

  @Test
  void callsOfManyClientsTakeLonger() {
    assertMillis(StoreLoad.call(16, Networks.of(8, 8)), 0.16);
    assertMillis(StoreLoad.call(1024, Networks.of(8, 8)), 1024 * 0.016);
  }

  @Test
  void aHundredThousandRanksReadMoreThanATerabyte() {
    StoreLoad load = StoreLoad.joining(100_000, Networks.of(8, 8));
    assertThat(load.bytes()).isEqualTo(1.69e12);
    assertThat(load.waiters()).isEqualTo(100_000);
  }
}
