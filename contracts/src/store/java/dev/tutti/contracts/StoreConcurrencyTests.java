package dev.tutti.contracts;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Store;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.SynchronousQueue;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** Tests of what concurrent threads and handles see of each other. */
interface StoreConcurrencyTests extends StoreFixture {
  /** How often to look whether the reader waits for a value. */
  long LOOK_NANOS = 100_000;

  @Test
  default void concurrentAddsLoseNothing() throws Exception {
    int threads = 8;
    long each = 50;
    List<List<Long>> seen =
        calls()
            .all(
                threads,
                thread -> {
                  Store handle = thread % 2 == 0 ? store() : calls().duplicate(store());
                  List<Long> values = new ArrayList<>();
                  for (int i = 0; i < each; i++) {
                    values.add(handle.add("count", 1));
                  }
                  return values;
                });
    assertThat(store().add("count", 0)).isEqualTo(threads * each);
    assertThat(seen.stream().flatMap(List::stream))
        .containsExactlyInAnyOrderElementsOf(
            LongStream.rangeClosed(1, threads * each).boxed().toList());
    assertThat(seen).allSatisfy(values -> assertThat(values).isSorted());
  }

  @Test
  default void concurrentAppendsLoseNothing() throws Exception {
    int threads = 4;
    int each = 25;
    calls()
        .all(
            threads,
            thread -> {
              Store handle = thread % 2 == 0 ? store() : calls().duplicate(store());
              for (int i = 0; i < each; i++) {
                handle.append("key", StoreFixture.bytes('a' + thread, 'a' + thread));
              }
              return thread;
            });
    byte[] all = store().get("key", LONG);
    assertThat(all).hasSize(threads * each * 2);
    for (int i = 0; i < all.length; i += 2) {
      assertThat(all[i]).isEqualTo(all[i + 1]);
    }
    Arrays.sort(all);
    assertThat(new String(all, UTF_8))
        .isEqualTo("a".repeat(50) + "b".repeat(50) + "c".repeat(50) + "d".repeat(50));
  }

  @Test
  default void exactlyOneCompareSetOfEqualValuesWins() throws Exception {
    for (int round = 0; round < 10; round++) {
      String key = "leader" + round;
      List<Boolean> stored =
          calls().all(6, thread -> store().compareSet(key, null, StoreFixture.bytes(1)).stored());
      assertThat(stored).containsOnlyOnce(true);
    }
  }

  @Test
  default void compareSetMakesALosslessCounter() throws Exception {
    store().set("count", "0");
    calls()
        .all(
            4,
            thread -> {
              byte[] seen = store().get("count", LONG);
              for (int i = 0; i < 25; i++) {
                while (true) {
                  int next = Integer.parseInt(new String(seen, UTF_8)) + 1;
                  Store.Swap swap =
                      store().compareSet("count", seen, Integer.toString(next).getBytes(UTF_8));
                  seen = swap.value();
                  if (swap.stored()) {
                    break;
                  }
                }
              }
              return thread;
            });
    assertThat(store().get("count", LONG)).asString(UTF_8).isEqualTo("100");
  }

  @Test
  default void aReaderNeverSeesTimeGoBack() throws Exception {
    int last = 200;
    store().set("clock", "0");
    Future<?> writer =
        calls()
            .run(
                () -> {
                  Store handle = calls().duplicate(store());
                  for (int i = 1; i <= last; i++) {
                    handle.set("clock", Integer.toString(i));
                  }
                });
    calls()
        .all(
            3,
            thread -> {
              Store handle = thread == 0 ? store() : calls().duplicate(store());
              int seen = 0;
              while (seen < last) {
                int now = Integer.parseInt(new String(handle.get("clock", LONG), UTF_8));
                assertThat(now).isGreaterThanOrEqualTo(seen);
                seen = now;
              }
              return seen;
            });
    Calls.ended(writer);
  }

  @Test
  default void aThreadSeesWhatAnotherThreadOfTheHandleWrote() throws Exception {
    int last = 200;
    SynchronousQueue<Integer> handOver = new SynchronousQueue<>();
    List<Future<?>> blocked = new ArrayList<>();
    // Blocked calls beside it, so that a store with several connections uses several.
    for (int i = 0; i < 3; i++) {
      blocked.add(calls().run(() -> store().await(List.of("never"), Waiting.LONGEST)));
    }
    Future<?> reader =
        calls()
            .run(
                () -> {
                  for (int i = 1; i <= last; i++) {
                    assertThat(handOver.take()).isEqualTo(i);
                    assertThat(store().check(List.of("key" + i))).isTrue();
                    assertThat(store().get("key" + i, LONG)).containsExactly((byte) i);
                  }
                });
    for (int i = 1; i <= last; i++) {
      store().set("key" + i, StoreFixture.bytes(i));
      while (!handOver.offer(i)) {
        assertThat(reader).isNotDone();
        time().park(handOver, LOOK_NANOS);
      }
    }
    Calls.ended(reader);
    blocked.forEach(Calls::assertBlocked);
  }
}
