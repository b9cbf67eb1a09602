package dev.tutti.contracts;

import static dev.tutti.contracts.StoreFixture.bytes;
import static dev.tutti.contracts.StoreFixture.thrownBy;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.Store.Swap;
import dev.tutti.StoreClosedException;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of values, counters, listing and argument checks. */
interface StoreValueTests extends StoreFixture {

  @Test
  default void getReturnsWhatWasSet() {
    store().set("key", bytes(1, 2, 3));
    assertThat(store().get("key", LONG)).containsExactly(1, 2, 3);
  }

  @Test
  default void setOverwrites() {
    store().set("key", "a long first value");
    store().set("key", "second");
    assertThat(store().get("key", LONG)).asString(UTF_8).isEqualTo("second");
    store().set("key", "a third value, longer than the second");
    assertThat(store().get("key", LONG))
        .asString(UTF_8)
        .isEqualTo("a third value, longer than the second");
  }

  @Test
  default void keepsAnEmptyValue() {
    store().set("key", new byte[0]);
    assertThat(store().get("key", LONG)).isEmpty();
    assertThat(store().check(List.of("key"))).isTrue();
    assertThat(store().multiGet(List.of("key"), LONG).get(0)).isEmpty();
  }

  @Test
  default void keepsEveryByte() {
    byte[] all = new byte[256];
    for (int i = 0; i < all.length; i++) {
      all[i] = (byte) i;
    }
    store().set("key", all);
    assertThat(store().get("key", LONG)).isEqualTo(all);
  }

  @Test
  default void keepsTheLongestValue() {
    byte[] value = new byte[Store.MAX_VALUE_BYTES];
    new Random(1).nextBytes(value);
    store().set("set", value);
    store().multiSet(List.of("small", "multi"), List.of(bytes(7), value));
    store().queuePush("queue", value);
    assertThat(store().compareSet("swap", null, value).stored()).isTrue();
    assertThat(store().get("set", LONG)).isEqualTo(value);
    assertThat(store().multiGet(List.of("multi", "swap", "small"), LONG))
        .satisfiesExactly(
            multi -> assertThat(multi).isEqualTo(value),
            swap -> assertThat(swap).isEqualTo(value),
            small -> assertThat(small).containsExactly(7));
    assertThat(store().queuePop("queue", LONG)).isEqualTo(value);
  }

  @Test
  default void refusesATooLongValue() {
    byte[] value = new byte[Store.MAX_VALUE_BYTES + 1];
    String expected = "8388609 bytes, at most 8388608";
    assertThatIllegalArgumentException()
        .isThrownBy(() -> store().set("key", value))
        .withMessageContaining("key'")
        .withMessageContaining(expected);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> store().append("key", value))
        .withMessageContaining(expected);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> store().compareSet("key", null, value))
        .withMessageContaining(expected);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> store().queuePush("key", value))
        .withMessageContaining(expected);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> store().multiSet(List.of("a", "key"), List.of(bytes(1), value)))
        .withMessageContaining("key'")
        .withMessageContaining(expected);
    assertThat(store().check(List.of("key"))).isFalse();
    assertThat(store().check(List.of("a"))).isFalse();
  }

  @Test
  default void refusesToAppendPastTheLongestValue() {
    store().set("key", new byte[Store.MAX_VALUE_BYTES]);
    assertThatThrownBy(() -> store().append("key", bytes(1)))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("key'");
    assertThat(store().get("key", LONG)).hasSize(Store.MAX_VALUE_BYTES);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "a",
        "/",
        "//",
        "/leading",
        "trailing/",
        "with space",
        "tab\tand\nline",
        "nul\0inside",
        "refcount/",
        "init/",
        "-/key",
        "umlaut-äöü",
        "日本語",
        "\uD83C\uDFBB violin"
      })
  default void takesEveryKindOfKey(String key) {
    store().set(key, bytes(1));
    store().set(key + "x", bytes(2));
    assertThat(store().get(key, LONG)).containsExactly(1);
    assertThat(store().listKeys()).containsExactlyInAnyOrder(key, key + "x");
    assertThat(store().deleteKey(key)).isTrue();
    assertThat(store().check(List.of(key))).isFalse();
    assertThat(store().get(key + "x", LONG)).containsExactly(2);
  }

  @Test
  default void takesALongKey() {
    String key = "é".repeat((Store.MAX_KEY_BYTES - 256) / 2);
    store().set(key, bytes(1));
    assertThat(store().get(key, LONG)).containsExactly(1);
    assertThat(store().listKeys()).containsExactly(key);
  }

  @Test
  default void refusesAnEmptyKeyEverywhere() {
    refusesKey("", "key must not be empty");
  }

  @Test
  default void refusesATooLongKeyEverywhere() {
    // One more would do, were there not stores that put a prefix before the key.
    refusesKey("é".repeat(Store.MAX_KEY_BYTES / 2 + 1), "at most 8192");
  }

  @Test
  default void refusesHalfACharacterEverywhere() {
    refusesKey("half \uD83C", "surrogate");
  }

  private void refusesKey(String key, String message) {
    operationsOn(store(), key)
        .forEach(
            (name, operation) ->
                assertThatIllegalArgumentException()
                    .as(name)
                    .isThrownBy(operation::run)
                    .withMessageContaining(message));
    assertThat(store().keyCount()).isZero();
  }

  /** Returns a call of each operation that takes keys, by name. */
  private static Map<String, Runnable> operationsOn(Store store, String key) {
    List<String> keys = List.of("good", key);
    byte[] value = bytes(1);
    Map<String, Runnable> operations = new TreeMap<>();
    operations.put("set", () -> store.set(key, value));
    operations.put("get", () -> store.get(key, ZERO));
    operations.put("add", () -> store.add(key, 1));
    operations.put("compareSet", () -> store.compareSet(key, null, value));
    operations.put("wait", () -> store.await(keys, ZERO));
    operations.put("check", () -> store.check(keys));
    operations.put("deleteKey", () -> store.deleteKey(key));
    operations.put("append", () -> store.append(key, value));
    operations.put("multiGet", () -> store.multiGet(keys, ZERO));
    operations.put("multiSet", () -> store.multiSet(keys, List.of(value, value)));
    operations.put("queuePush", () -> store.queuePush(key, value));
    operations.put("queuePop", () -> store.queuePop(key, ZERO));
    operations.put("queueLength", () -> store.queueLength(key));
    operations.put("barrier", () -> store.barrier(key, 1, ZERO));
    return operations;
  }

  @Test
  default void neitherKeepsNorReturnsASharedArray() {
    byte[] given = bytes(1, 2);
    store().set("set", given);
    store().append("append", given);
    store().multiSet(List.of("multi"), List.of(given));
    store().queuePush("queue", given);
    byte[] swapped = given.clone();
    Arrays.fill(store().compareSet("swap", null, swapped).value(), (byte) 9);
    Arrays.fill(swapped, (byte) 9);
    Arrays.fill(given, (byte) 9);
    for (String key : List.of("set", "append", "multi", "swap")) {
      Arrays.fill(store().get(key, LONG), (byte) 8);
      Arrays.fill(store().multiGet(List.of(key), LONG).get(0), (byte) 7);
      Arrays.fill(store().compareSet(key, null, given).value(), (byte) 6);
      assertThat(store().get(key, LONG)).as(key).containsExactly(1, 2);
    }
    assertThat(store().queuePop("queue", LONG)).containsExactly(1, 2);
  }

  @Test
  default void multiGetKeepsTheOrderOfTheKeys() {
    store().multiSet(List.of("a", "b", "c"), List.of(bytes(1), bytes(), bytes(3, 3)));
    List<byte[]> values = store().multiGet(List.of("c", "a", "b", "c"), LONG);
    assertThat(values)
        .satisfiesExactly(
            c -> assertThat(c).containsExactly(3, 3),
            a -> assertThat(a).containsExactly(1),
            b -> assertThat(b).isEmpty(),
            c -> assertThat(c).containsExactly(3, 3));
  }

  @Test
  default void multiSetTakesTheLastValueOfAKeyNamedTwice() {
    store().multiSet(List.of("a", "a"), List.of(bytes(1), bytes(2)));
    assertThat(store().get("a", LONG)).containsExactly(2);
  }

  @Test
  default void multiCallsTakeManyKeys() {
    List<String> keys = IntStream.range(0, 5000).mapToObj(i -> "key" + i).toList();
    store().multiSet(keys, keys.stream().map(key -> key.getBytes(UTF_8)).toList());
    assertThat(store().check(keys)).isTrue();
    assertThat(store().keyCount()).isEqualTo(5000);
    assertThat(store().multiGet(keys, LONG).stream().map(value -> new String(value, UTF_8)))
        .containsExactlyElementsOf(keys);
  }

  @Test
  default void callsWithoutKeysDoNothing() {
    store().multiSet(List.of(), List.of());
    assertThat(
            thrownBy(
                () -> {
                  assertThat(store().multiGet(List.of(), ZERO)).isEmpty();
                  store().await(List.of(), ZERO);
                }))
        .isNull();
    assertThat(store().check(List.of())).isTrue();
    assertThat(store().keyCount()).isZero();
  }

  @Test
  default void multiSetRefusesUnequalNumbers() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> store().multiSet(List.of("a", "b"), List.of(bytes(1))))
        .withMessageContaining("2 keys and 1 values");
    assertThat(store().check(List.of("a"))).isFalse();
  }

  @Test
  default void appendCreatesAndExtends() {
    store().append("key", bytes(1, 2));
    store().append("key", bytes());
    store().append("key", bytes(3));
    assertThat(store().get("key", LONG)).containsExactly(1, 2, 3);
    store().append("empty", bytes());
    assertThat(store().check(List.of("empty"))).isTrue();
  }

  @Test
  default void deleteKeyTellsWhetherItWasThere() {
    assertThat(store().deleteKey("key")).isFalse();
    store().set("key", "value");
    assertThat(store().deleteKey("key")).isTrue();
    assertThat(store().deleteKey("key")).isFalse();
    assertThat(store().check(List.of("key"))).isFalse();
    assertThat(store().listKeys()).isEmpty();
    assertThatThrownBy(() -> store().get("key", ZERO)).isInstanceOf(StoreTimeoutException.class);
    store().set("key", "again");
    assertThat(store().get("key", LONG)).asString(UTF_8).isEqualTo("again");
  }

  @Test
  default void checkNeedsAllKeys() {
    store().set("a", "1");
    store().set("b", "2");
    assertThat(store().check(List.of("a", "b"))).isTrue();
    assertThat(store().check(List.of("a", "c", "b"))).isFalse();
  }

  @Test
  default void countsAndListsKeysButNoQueues() {
    assertThat(store().keyCount()).isZero();
    assertThat(store().listKeys()).isEmpty();
    store().set("b", "1");
    store().set("a/c", "1");
    store().set("b", "2");
    store().add("a", 1);
    store().queuePush("queue", bytes(1));
    store().barrier("barrier", 1, LONG);
    assertThat(store().keyCount()).isEqualTo(3);
    assertThat(store().listKeys()).containsExactly("a", "a/c", "b");
    assertThat(store().deleteKey("a/c")).isTrue();
    assertThat(store().keyCount()).isEqualTo(2);
    assertThat(store().listKeys()).containsExactly("a", "b");
  }

  @Test
  default void addCountsInDecimalText() {
    assertThat(store().add("key", 5)).isEqualTo(5);
    assertThat(store().add("key", -7)).isEqualTo(-2);
    assertThat(store().add("key", 0)).isEqualTo(-2);
    assertThat(store().get("key", LONG)).asString(UTF_8).isEqualTo("-2");
    store().set("key", "41");
    assertThat(store().add("key", 1)).isEqualTo(42);
    assertThat(store().add("fresh", 0)).isZero();
    assertThat(store().get("fresh", LONG)).asString(UTF_8).isEqualTo("0");
  }

  @Test
  default void addReachesTheEndsOfItsRange() {
    assertThat(store().add("max", Long.MAX_VALUE)).isEqualTo(Long.MAX_VALUE);
    assertThat(store().add("min", Long.MIN_VALUE)).isEqualTo(Long.MIN_VALUE);
    assertThat(store().add("max", Long.MIN_VALUE)).isEqualTo(-1);
  }

  @ParameterizedTest
  @ValueSource(strings = {"text", "", "1.5", "9223372036854775807", "99999999999999999999999"})
  default void addRefusesWhatItCannotAddTo(String value) {
    store().set("key", value);
    assertThatThrownBy(() -> store().add("key", 1))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("key'");
    assertThat(store().get("key", LONG)).asString(UTF_8).isEqualTo(value);
    assertThat(store().add("other", 1)).isEqualTo(1);
  }

  @Test
  default void compareSetStoresWhereTheExpectedIs() {
    assertSwap(store().compareSet("key", null, bytes(1)), true, bytes(1));
    assertSwap(store().compareSet("key", bytes(1), bytes(2, 2)), true, bytes(2, 2));
    assertSwap(store().compareSet("key", bytes(2, 2), bytes()), true, bytes());
    assertSwap(store().compareSet("key", bytes(), bytes(3)), true, bytes(3));
    assertSwap(store().compareSet("key", bytes(3), bytes(3)), true, bytes(3));
    assertThat(store().get("key", LONG)).containsExactly(3);
  }

  @Test
  default void compareSetReturnsWhatIsThereInstead() {
    store().set("key", bytes(1));
    assertSwap(store().compareSet("key", bytes(2), bytes(3)), false, bytes(1));
    assertSwap(store().compareSet("key", null, bytes(3)), false, bytes(1));
    assertSwap(store().compareSet("key", bytes(), bytes(3)), false, bytes(1));
    assertThat(store().get("key", LONG)).containsExactly(1);
  }

  @Test
  default void compareSetTellsAbsentFromDifferent() {
    assertSwap(store().compareSet("key", bytes(1), bytes(2)), false, null);
    assertSwap(store().compareSet("key", bytes(1), bytes(1)), false, null);
    assertSwap(store().compareSet("key", bytes(), bytes(1)), false, null);
    assertThat(store().check(List.of("key"))).isFalse();
    store().set("empty", bytes());
    assertSwap(store().compareSet("empty", null, bytes(1)), false, bytes());
  }

  @Test
  default void compareSetDoesNotClaimAValueThatWasThereBefore() {
    store().set("key", bytes(1));
    assertSwap(store().compareSet("key", bytes(2), bytes(1)), false, bytes(1));
    assertSwap(store().compareSet("key", null, bytes(1)), false, bytes(1));
  }

  private static void assertSwap(Swap swap, boolean stored, byte @Nullable [] value) {
    assertThat(swap.stored()).isEqualTo(stored);
    assertThat(swap.value()).isEqualTo(value);
  }

  @Test
  default void duplicatesShareTheDataAndCloseAlone() {
    Store first = calls().duplicate(store());
    Store second = calls().duplicate(first);
    assertThat(first.timeout()).isEqualTo(store().timeout());
    first.set("key", "value");
    assertThat(second.get("key", LONG)).asString(UTF_8).isEqualTo("value");
    first.close();
    assertThatThrownBy(() -> first.get("key", ZERO)).isInstanceOf(StoreClosedException.class);
    assertThat(second.add("count", 1)).isEqualTo(1);
    assertThat(store().add("count", 1)).isEqualTo(2);
    assertThat(store().get("key", LONG)).asString(UTF_8).isEqualTo("value");
  }

  @Test
  default void everyCallOfAClosedStoreThrows() {
    Store closed = store().duplicate();
    closed.set("key", "value");
    closed.close();
    closed.close();
    Map<String, Runnable> operations = operationsOn(closed, "key");
    operations.put("keyCount", closed::keyCount);
    operations.put("listKeys", closed::listKeys);
    operations.put("duplicate", closed::duplicate);
    operations.forEach(
        (name, operation) ->
            assertThatThrownBy(operation::run).as(name).isInstanceOf(StoreClosedException.class));
    assertThat(store().get("key", LONG)).asString(UTF_8).isEqualTo("value");
    assertThat(store().keyCount()).isEqualTo(1);
  }
}
