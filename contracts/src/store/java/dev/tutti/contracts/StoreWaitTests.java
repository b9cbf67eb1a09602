package dev.tutti.contracts;

import static dev.tutti.contracts.StoreFixture.bytes;
import static dev.tutti.contracts.StoreFixture.thrownBy;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.StoreClosedException;
import dev.tutti.StoreException;
import dev.tutti.StoreQueueEmptyException;
import dev.tutti.StoreTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests of waiting: which calls wake which waiters, deadlines, close and interrupts. */
interface StoreWaitTests extends StoreFixture {
  /** A way to make a key exist. */
  enum Write {
    SET,
    ADD,
    APPEND,
    COMPARE_SET,
    MULTI_SET,
    QUEUE_PUSH;

    void to(Store store, String key) {
      switch (this) {
        case SET -> store.set(key, bytes(1));
        case ADD -> store.add(key, 1);
        case APPEND -> store.append(key, bytes(1));
        case COMPARE_SET -> store.compareSet(key, null, bytes(1));
        case MULTI_SET -> store.multiSet(List.of("other", key), List.of(bytes(1), bytes(1)));
        case QUEUE_PUSH -> store.queuePush(key, bytes(1));
      }
    }
  }

  /** A way to wait for the key "key". */
  enum Blocking {
    GET,
    WAIT,
    MULTI_GET,
    QUEUE_POP,
    BARRIER;

    void on(Store store, Duration timeout) {
      switch (this) {
        case GET -> store.get("key", timeout);
        case WAIT -> store.await(List.of("key"), timeout);
        case MULTI_GET -> store.multiGet(List.of("key"), timeout);
        case QUEUE_POP -> store.queuePop("key", timeout);
        case BARRIER -> store.barrier("key", 2, timeout);
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  default void everyWriteWakesAWait(Write write) throws Exception {
    Store other = calls().duplicate(store());
    Future<?> call = calls().run(() -> store().await(List.of("key"), LONG));
    Calls.assertBlocked(call);
    write.to(other, "key");
    Calls.ended(call);
  }

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "QUEUE_PUSH")
  default void everyWriteOfAValueWakesAGet(Write write) throws Exception {
    Store other = calls().duplicate(store());
    Future<byte[]> get = calls().start(() -> store().get("key", LONG));
    Future<List<byte[]>> multiGet = calls().start(() -> store().multiGet(List.of("key"), LONG));
    Calls.assertBlocked(get);
    Calls.assertBlocked(multiGet);
    write.to(other, "key");
    byte[] expected = write == Write.ADD ? "1".getBytes(UTF_8) : bytes(1);
    assertThat(Calls.ended(get)).isEqualTo(expected);
    assertThat(Calls.ended(multiGet).get(0)).isEqualTo(expected);
  }

  @Test
  default void aWriteOfAnotherKeyWakesNobody() {
    Future<?> call = calls().run(() -> store().await(List.of("key"), LONG));
    Calls.assertBlocked(call);
    store().set("key2", "value");
    store().set("ke", "value");
    Calls.assertBlocked(call);
  }

  @Test
  default void waitsForAllKeysToExistAtOnce() throws Exception {
    Store other = calls().duplicate(store());
    Future<?> call = calls().run(() -> store().await(List.of("a", "b", "a"), LONG));
    Calls.assertBlocked(call);
    other.set("a", "1");
    Calls.assertBlocked(call);
    assertThat(other.deleteKey("a")).isTrue();
    other.set("b", "2");
    Calls.assertBlocked(call);
    other.set("a", "1");
    Calls.ended(call);
  }

  @Test
  default void aGetIsNotSatisfiedByAQueue() throws Exception {
    store().queuePush("key", bytes(1));
    assertThatThrownBy(() -> store().get("key", ZERO)).isInstanceOf(StoreTimeoutException.class);
    assertThatThrownBy(() -> store().get("key", SHORT)).isInstanceOf(StoreTimeoutException.class);
    Future<byte[]> call = calls().start(() -> store().get("key", LONG));
    Calls.assertBlocked(call);
    store().set("key", bytes(2));
    assertThat(Calls.ended(call)).containsExactly(2);
    assertThat(store().queuePop("key", LONG)).containsExactly(1);
  }

  @ParameterizedTest
  @EnumSource
  default void aZeroOrNegativeTimeoutAnswersAtOnce(Blocking blocking) {
    Class<? extends StoreException> expected =
        blocking == Blocking.QUEUE_POP
            ? StoreQueueEmptyException.class
            : StoreTimeoutException.class;
    long start = time().nanoTime();
    for (Duration timeout :
        List.of(ZERO, Duration.ofNanos(-1), Duration.ofSeconds(Long.MIN_VALUE))) {
      assertThat(thrownBy(() -> blocking.on(store(), timeout)))
          .isInstanceOf(expected)
          .hasMessageContaining("key'");
    }
    assertThat(Duration.ofNanos(time().nanoTime() - start)).isLessThan(LONG);
  }

  @Test
  default void whatIsThereIsReturnedWithoutTime() {
    store().set("key", bytes(1));
    Duration none = Duration.ofNanos(-1);
    assertThat(
            thrownBy(
                () -> {
                  store().queuePush("key", bytes(2));
                  store().await(List.of("key"), none);
                  assertThat(store().get("key", none)).containsExactly(1);
                  assertThat(store().multiGet(List.of("key"), none).get(0)).containsExactly(1);
                  assertThat(store().queuePop("key", none)).containsExactly(2);
                  store().barrier("key", 1, none);
                }))
        .isNull();
  }

  @ParameterizedTest
  @EnumSource
  default void aTimeoutEndsAtItsDeadline(Blocking blocking) {
    long start = time().nanoTime();
    assertThat(thrownBy(() -> blocking.on(store(), SHORT)))
        .isExactlyInstanceOf(StoreTimeoutException.class)
        .hasMessageContaining("key'")
        .hasMessageContaining("150 ms")
        .satisfies(e -> assertThat(((StoreTimeoutException) e).keys()).hasSize(1))
        .satisfies(e -> assertThat(((StoreTimeoutException) e).keys().get(0)).endsWith("key"));
    assertThat(Duration.ofNanos(time().nanoTime() - start))
        .isGreaterThanOrEqualTo(SHORT)
        .isLessThan(LONG);
  }

  @Test
  default void aTimeoutNamesTheMissingKeysOnly() {
    store().set("here", "1");
    assertThat(thrownBy(() -> store().await(List.of("gone1", "here", "gone2"), SHORT)))
        .isInstanceOf(StoreTimeoutException.class)
        .hasMessageContaining("2 of 3 keys missing")
        .hasMessageContaining("gone1'")
        .hasMessageContaining("gone2'")
        .message()
        .doesNotContain("here'");
  }

  @Test
  default void aTimedOutCallLeavesTheStoreUsable() throws Exception {
    for (Blocking blocking : Blocking.values()) {
      assertThatThrownBy(() -> blocking.on(store(), Duration.ofMillis(5)))
          .isInstanceOf(StoreTimeoutException.class);
    }
    store().set("key", bytes(1));
    store().queuePush("key", bytes(2));
    assertThat(store().queueLength("key")).isEqualTo(1);
    assertThat(store().get("key", LONG)).containsExactly(1);
    assertThat(store().queuePop("key", LONG)).containsExactly(2);
    Future<?> first = calls().run(() -> store().barrier("key", 2, LONG));
    store().barrier("key", 2, LONG);
    Calls.ended(first);
  }

  @Test
  default void aDeadlineRacingAWriteGivesOneOrTheOther() throws Exception {
    Store other = calls().duplicate(store());
    for (int i = 0; i < 100; i++) {
      String key = "key" + i;
      Duration timeout = Duration.ofNanos(20_000L * (i % 25));
      Future<?> call = calls().run(() -> store().await(List.of(key), timeout));
      other.set(key, bytes(i));
      try {
        call.get();
      } catch (ExecutionException e) {
        assertThat(e.getCause()).isInstanceOf(StoreTimeoutException.class);
      }
      assertThat(store().get(key, LONG)).containsExactly(i);
      assertThat(store().add("count", 1)).isEqualTo(i + 1);
    }
  }

  @ParameterizedTest
  @EnumSource
  default void takesTheLongestTimeout(Blocking blocking) throws Exception {
    Future<?> call = calls().run(() -> blocking.on(store(), Duration.ofSeconds(Long.MAX_VALUE)));
    Calls.assertBlocked(call);
    switch (blocking) {
      case QUEUE_POP -> store().queuePush("key", bytes(1));
      case BARRIER -> store().barrier("key", 2, LONG);
      default -> store().set("key", bytes(1));
    }
    Calls.ended(call);
  }

  @Test
  default void blockedCallsStallNobody() throws Exception {
    List<Future<?>> blocked = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      String key = "blocked" + i;
      blocked.add(calls().run(() -> store().await(List.of(key), LONG)));
      blocked.add(calls().run(() -> store().get(key, LONG)));
      blocked.add(calls().run(() -> store().queuePop("q" + key, LONG)));
      blocked.add(calls().run(() -> store().barrier(key, 2, LONG)));
    }
    Calls.assertBlocked(blocked.getLast());
    for (int i = 0; i < 20; i++) {
      store().set("free", bytes(i));
      assertThat(store().get("free", LONG)).containsExactly(i);
      assertThat(store().add("count", 1)).isEqualTo(i + 1);
    }
    for (int i = 0; i < 8; i++) {
      store().set("blocked" + i, bytes(1));
      store().queuePush("qblocked" + i, bytes(1));
      store().barrier("blocked" + i, 2, LONG);
    }
    for (Future<?> call : blocked) {
      Calls.ended(call);
    }
  }

  @Test
  default void oneWriteWakesEveryWaiter() throws Exception {
    List<Future<?>> waiting = new ArrayList<>();
    for (int i = 0; i < 64; i++) {
      waiting.add(calls().run(() -> store().await(List.of("key"), LONG)));
    }
    Calls.assertBlocked(waiting.get(0));
    Calls.assertBlocked(waiting.get(63));
    store().set("key", bytes(1));
    for (Future<?> call : waiting) {
      Calls.ended(call);
    }
  }

  @ParameterizedTest
  @EnumSource
  default void closeEndsABlockedCall(Blocking blocking) {
    Store handle = calls().duplicate(store());
    Future<?> call = calls().run(() -> blocking.on(handle, LONG));
    Calls.assertBlocked(call);
    handle.close();
    Calls.failed(call, StoreClosedException.class);
  }

  @Test
  default void closeLeavesTheCallsOfOtherHandles() throws Exception {
    Store handle = calls().duplicate(store());
    Future<?> call = calls().run(() -> handle.await(List.of("key"), LONG));
    Future<?> kept = calls().run(() -> store().await(List.of("key"), LONG));
    Calls.assertBlocked(call);
    Calls.assertBlocked(kept);
    handle.close();
    Calls.failed(call, StoreClosedException.class);
    Calls.assertBlocked(kept);
    store().set("key", bytes(1));
    Calls.ended(kept);
  }

  @ParameterizedTest
  @EnumSource
  default void anInterruptEndsABlockedCall(Blocking blocking) throws Exception {
    CompletableFuture<Thread> thread = new CompletableFuture<>();
    Future<Boolean> call =
        calls()
            .start(
                () -> {
                  thread.complete(Thread.currentThread());
                  assertThatThrownBy(() -> blocking.on(store(), LONG))
                      .isInstanceOf(StoreException.class)
                      .isNotInstanceOf(StoreTimeoutException.class)
                      .hasMessageStartingWith("interrupted while waiting")
                      .hasMessageNotContaining("timeout");
                  return Thread.interrupted();
                });
    Calls.assertBlocked(call);
    thread.get().interrupt();
    assertThat(Calls.ended(call)).as("interrupt status").isTrue();
    store().set("key", bytes(1));
    assertThat(store().get("key", LONG)).containsExactly(1);
  }

  @Test
  default void anInterruptedThreadCanStillMakeCallsThatDoNotBlock() {
    Thread.currentThread().interrupt();
    store().set("key", bytes(1));
    assertThat(store().get("key", LONG)).containsExactly(1);
    assertThat(store().add("count", 1)).isEqualTo(1);
    store().await(List.of("key"), LONG);
    assertThat(Thread.interrupted()).isTrue();
    assertThat(store().add("count", 1)).isEqualTo(2);
  }
}
