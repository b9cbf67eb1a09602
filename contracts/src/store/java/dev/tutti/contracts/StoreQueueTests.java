package dev.tutti.contracts;

import static dev.tutti.contracts.StoreFixture.bytes;
import static dev.tutti.contracts.StoreFixture.thrownBy;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.StoreQueueEmptyException;
import dev.tutti.StoreTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of queues and barriers. */
interface StoreQueueTests extends StoreFixture {
  /** How often to look which of several calls has ended. */
  long LOOK_NANOS = 1_000_000;

  @Test
  default void aQueueIsFirstInFirstOut() {
    assertThat(store().queueLength("queue")).isZero();
    for (int i = 0; i < 5; i++) {
      store().queuePush("queue", bytes(i));
    }
    store().queuePush("queue", bytes());
    assertThat(store().queueLength("queue")).isEqualTo(6);
    for (int i = 0; i < 5; i++) {
      assertThat(store().queuePop("queue", LONG)).containsExactly(i);
    }
    assertThat(store().queuePop("queue", LONG)).isEmpty();
    assertThat(store().queueLength("queue")).isZero();
  }

  @Test
  default void anEmptyQueueIsEmptyAtOnceOrAfterItsTimeout() {
    assertThat(thrownBy(() -> store().queuePop("queue", ZERO)))
        .isInstanceOf(StoreQueueEmptyException.class)
        .hasMessageContaining("queue' is empty");
    assertThat(thrownBy(() -> store().queuePop("queue", SHORT)))
        .isInstanceOf(StoreTimeoutException.class)
        .hasMessageContaining("queue'")
        .hasMessageContaining("150 ms");
    store().queuePush("queue", bytes(1));
    store().queuePop("queue", LONG);
    assertThat(thrownBy(() -> store().queuePop("queue", ZERO)))
        .isInstanceOf(StoreQueueEmptyException.class);
  }

  @Test
  default void aValueDoesNotServeAPop() {
    store().set("queue", "value");
    assertThat(thrownBy(() -> store().queuePop("queue", ZERO)))
        .isInstanceOf(StoreQueueEmptyException.class);
    assertThat(thrownBy(() -> store().queuePop("queue", SHORT)))
        .isInstanceOf(StoreTimeoutException.class);
    assertThat(store().queueLength("queue")).isZero();
  }

  @Test
  default void checkAndWaitSeeANonEmptyQueue() {
    assertThat(store().check(List.of("queue"))).isFalse();
    store().queuePush("queue", bytes(1));
    assertThat(store().check(List.of("queue"))).isTrue();
    store().await(List.of("queue"), LONG);
    store().queuePop("queue", LONG);
    assertThat(store().check(List.of("queue"))).isFalse();
  }

  @Test
  default void deletingAKeyLeavesTheQueueOfItsName() {
    store().set("key", "value");
    store().queuePush("key", bytes(1));
    assertThat(store().deleteKey("key")).isTrue();
    assertThat(store().queueLength("key")).isEqualTo(1);
    assertThat(store().check(List.of("key"))).isTrue();
  }

  @Test
  default void aPushWakesOneBlockedPop() throws Exception {
    List<Future<byte[]>> pops = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      pops.add(calls().start(() -> store().queuePop("queue", LONG)));
    }
    Calls.assertBlocked(pops.get(7));
    List<Integer> got = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      store().queuePush("queue", bytes(i));
      got.add((int) Calls.ended(removeEnded(pops))[0]);
      assertThat(pops).noneMatch(Future::isDone);
    }
    assertThat(got).containsExactly(0, 1, 2, 3, 4, 5, 6, 7);
    assertThat(store().queueLength("queue")).isZero();
  }

  private <T> Future<T> removeEnded(List<Future<T>> calls) {
    long deadline = time().nanoTime() + LONG.toNanos();
    while (time().nanoTime() - deadline < 0) {
      for (int i = 0; i < calls.size(); i++) {
        if (calls.get(i).isDone()) {
          return calls.remove(i);
        }
      }
      time().park(calls, LOOK_NANOS);
    }
    throw new AssertionError("a push woke none of " + calls.size() + " blocked pops");
  }

  @Test
  default void aTimedOutPopTakesNothing() {
    for (int i = 0; i < 20; i++) {
      assertThatThrownBy(() -> store().queuePop("queue", Duration.ofMillis(1)))
          .isInstanceOf(StoreTimeoutException.class);
      store().queuePush("queue", bytes(i));
      assertThat(store().queueLength("queue")).isEqualTo(1);
      assertThat(store().queuePop("queue", LONG)).containsExactly(i);
    }
  }

  @Test
  default void everyValueIsPoppedOnce() throws Exception {
    int each = 100;
    Future<List<Integer>> pushed =
        calls()
            .start(
                () ->
                    calls()
                        .all(
                            4,
                            producer -> {
                              Store handle = calls().duplicate(store());
                              for (int i = 0; i < each; i++) {
                                handle.queuePush("queue", bytes(producer, i));
                              }
                              return producer;
                            }));
    List<List<Integer>> popped =
        calls()
            .all(
                4,
                consumer -> {
                  List<Integer> got = new ArrayList<>();
                  for (int i = 0; i < each; i++) {
                    byte[] value = store().queuePop("queue", LONG);
                    got.add(value[0] * each + value[1]);
                  }
                  return got;
                });
    Calls.ended(pushed);
    List<Integer> all = popped.stream().flatMap(List::stream).sorted().toList();
    assertThat(all).hasSize(4 * each).doesNotHaveDuplicates();
    assertThat(store().queueLength("queue")).isZero();
  }

  @Test
  default void aBarrierOfOneReturns() {
    store().barrier("barrier", 1, LONG);
    store().barrier("barrier", 1, LONG);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, -1})
  default void aBarrierNeedsAMember(int size) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> store().barrier("barrier", size, LONG))
        .withMessageContaining("barrier'")
        .withMessageContaining("got " + size);
  }

  @Test
  default void aBarrierHoldsItsMembersInEveryRound() throws Exception {
    int members = 6;
    int rounds = 15;
    AtomicInteger arrived = new AtomicInteger();
    calls()
        .all(
            members,
            member -> {
              Store handle = member % 2 == 0 ? store() : calls().duplicate(store());
              for (int round = 1; round <= rounds; round++) {
                arrived.incrementAndGet();
                handle.barrier("barrier", members, LONG);
                assertThat(arrived.get()).isEqualTo(round * members);
                handle.barrier("barrier", members, LONG);
              }
              return member;
            });
    assertThat(arrived).hasValue(members * rounds);
    assertThat(store().listKeys()).isEmpty();
  }

  @Test
  default void aBarrierOrdersWhatWasWrittenBefore() throws Exception {
    int members = 4;
    calls()
        .all(
            members,
            member -> {
              Store handle = calls().duplicate(store());
              for (int round = 0; round < 20; round++) {
                handle.set("from" + member, bytes(round));
                handle.barrier("written", members, LONG);
                for (int peer = 0; peer < members; peer++) {
                  assertThat(handle.get("from" + peer, LONG)).containsExactly(round);
                }
                handle.barrier("read", members, LONG);
              }
              return member;
            });
  }

  @Test
  default void aBarrierTellsHowManyCame() throws Exception {
    Future<?> first = calls().run(() -> store().barrier("barrier", 4, LONG));
    Store handle = calls().duplicate(store());
    Future<?> second = calls().run(() -> handle.barrier("barrier", 4, LONG));
    assertThat(untilThreeCame("barrier", 4))
        .contains("barrier'")
        .contains("3 of 4 members arrived")
        .contains("150 ms");
    Calls.assertBlocked(first);
    Calls.assertBlocked(second);
    // The one that gave up has left, so two more are needed, not one.
    Future<?> third = calls().run(() -> store().barrier("barrier", 4, LONG));
    Calls.assertBlocked(third);
    store().barrier("barrier", 4, LONG);
    Calls.ended(first);
    Calls.ended(second);
    Calls.ended(third);
  }

  /**
   * Joins a barrier and gives up, repeatedly, until two others were there at the same time; returns
   * the message of that failure.
   */
  private String untilThreeCame(String key, int size) {
    long deadline = time().nanoTime() + LONG.toNanos();
    while (true) {
      Throwable thrown = catchThrowable(() -> store().barrier(key, size, SHORT));
      assertThat(thrown).isInstanceOf(StoreTimeoutException.class);
      String text = String.valueOf(thrown.getMessage());
      if (text.contains("3 of ") || time().nanoTime() - deadline > 0) {
        return text;
      }
    }
  }

  @Test
  default void aBarrierRefusesAMemberThatExpectsAnotherSize() throws Exception {
    Future<?> first = calls().run(() -> store().barrier("barrier", 4, LONG));
    Future<?> second = calls().run(() -> store().barrier("barrier", 4, LONG));
    untilThreeCame("barrier", 4);
    assertThatThrownBy(() -> store().barrier("barrier", 3, LONG))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("barrier' has 4 members, this caller expects 3");
    Calls.assertBlocked(first);
    Future<?> third = calls().run(() -> store().barrier("barrier", 4, LONG));
    store().barrier("barrier", 4, LONG);
    for (Future<?> each : List.of(first, second, third)) {
      Calls.ended(each);
    }
    // Nobody is there now, so the size may change.
    store().barrier("barrier", 1, LONG);
  }

  @Test
  default void barriersOfTwoKeysAreIndependent() throws Exception {
    Future<?> a = calls().run(() -> store().barrier("a", 2, LONG));
    Future<?> b = calls().run(() -> store().barrier("b", 2, LONG));
    Calls.assertBlocked(a);
    Calls.assertBlocked(b);
    store().barrier("b", 2, LONG);
    Calls.ended(b);
    Calls.assertBlocked(a);
    store().barrier("a", 2, LONG);
    Calls.ended(a);
  }
}
