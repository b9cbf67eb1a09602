package dev.tutti.contracts.history;

import static dev.tutti.contracts.history.HistoryCall.NEVER;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.contracts.history.HistoryCall.Kind;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.assertj.core.api.ListAssert;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Tests that the checker finds planted violations, and nothing in correct histories. */
class HistoryCheckerTest {
  private final List<HistoryCall> calls = new ArrayList<>();

  private HistoryCheckerTest call(
      Kind kind,
      @Nullable String expected,
      @Nullable String value,
      @Nullable String result,
      long invoked,
      long returned) {
    calls.add(new HistoryCall(0, kind, "key", expected, value, result, invoked, returned));
    return this;
  }

  private HistoryCheckerTest add(long result, long invoked, long returned) {
    return call(Kind.ADD, null, "1", Long.toString(result), invoked, returned);
  }

  private HistoryCheckerTest count(long result, long invoked, long returned) {
    return call(Kind.ADD, null, "0", Long.toString(result), invoked, returned);
  }

  private HistoryCheckerTest lostAdd(long invoked) {
    return call(Kind.ADD, null, "1", null, invoked, NEVER);
  }

  private HistoryCheckerTest set(String value, long invoked, long returned) {
    return call(Kind.SET, null, value, null, invoked, returned);
  }

  private HistoryCheckerTest get(@Nullable String result, long invoked, long returned) {
    return call(Kind.GET, null, null, result, invoked, returned);
  }

  private HistoryCheckerTest swap(
      @Nullable String expected, String value, @Nullable String result, long from, long to) {
    return call(Kind.COMPARE_SET, expected, value, result, from, to);
  }

  private HistoryCheckerTest push(String value, long invoked, long returned) {
    return call(Kind.PUSH, null, value, null, invoked, returned);
  }

  private HistoryCheckerTest pop(@Nullable String result, long invoked, long returned) {
    return call(Kind.POP, null, null, result, invoked, returned);
  }

  /** Checks the calls in another order than that in which they were made, then forgets them. */
  private ListAssert<String> violations() {
    Collections.shuffle(calls, new Random(calls.size()));
    List<String> found = HistoryChecker.violations(List.copyOf(calls));
    calls.clear();
    return assertThat(found);
  }

  @Test
  void findsAnAdditionThatWasLost() {
    add(1, 0, 1).add(2, 2, 3).count(1, 4, 5).violations().hasSize(1);
    add(1, 0, 9).add(1, 0, 9).violations().singleElement().asString().contains("two additions");
  }

  @Test
  void findsAnAdditionThatWasAppliedTwice() {
    add(1, 0, 1).add(3, 2, 3).violations().singleElement().asString().contains("is more than");
    lostAdd(0).add(3, 2, 3).violations().hasSize(1);
    add(1, 0, 1).count(2, 2, 3).violations().hasSize(1);
    add(2, 0, 1).lostAdd(2).violations().hasSize(1);
  }

  @Test
  void findsACounterThatWentBack() {
    add(2, 0, 1).add(1, 2, 3).violations().singleElement().asString().contains("smaller result");
    count(1, 0, 1).add(1, 2, 3).violations().isNotEmpty();
  }

  @Test
  void passesCorrectCounters() {
    add(2, 0, 5).add(1, 0, 5).count(2, 1, 6).count(2, 7, 8).violations().isEmpty();
    lostAdd(0).add(1, 1, 2).count(1, 3, 4).count(2, 5, 6).violations().isEmpty();
    lostAdd(0).lostAdd(0).add(3, 1, 2).violations().isEmpty();
  }

  @Test
  void findsAWriteThatWasLost() {
    set("a", 0, 1).get(null, 2, 3).violations().singleElement().asString().contains("linearizable");
    set("a", 0, 1).set("b", 2, 3).get("a", 4, 5).violations().hasSize(1);
    swap(null, "a", "a", 0, 1).swap("a", "b", "b", 2, 3).get("a", 4, 5).violations().hasSize(1);
  }

  @Test
  void findsAStaleRead() {
    set("a", 0, 1).set("b", 2, 9).get("b", 3, 4).get("a", 5, 6).violations().hasSize(1);
    set("a", 0, 1).set("b", 2, NEVER).get("b", 3, 4).get("a", 5, 6).violations().hasSize(1);
  }

  @Test
  void findsAValueThatNobodyWrote() {
    get("a", 0, 1).set("a", 2, 3).violations().hasSize(1);
    set("a", 0, 1).get("9 wrong bytes", 0, 1).violations().hasSize(1);
  }

  @Test
  void findsTwoSwapsOfOneValue() {
    set("a", 0, 1).swap("a", "b", "b", 2, 9).swap("a", "c", "c", 2, 9).violations().hasSize(1);
    set("a", 0, 1).swap("a", "b", "a", 2, 3).violations().hasSize(1);
    set("a", 0, 1).call(Kind.DELETE, null, null, "false", 2, 3).violations().hasSize(1);
  }

  @Test
  void passesCorrectRegisters() {
    set("a", 0, 9).get(null, 1, 2).get("a", 3, 4).get("a", 5, 6).violations().isEmpty();
    set("a", 0, 1).set("b", 2, NEVER).get("a", 3, 4).get("b", 5, 6).violations().isEmpty();
    set("a", 0, 1)
        .swap("a", "b", null, 2, NEVER)
        .swap("b", "c", "c", 3, 4)
        .get("c", 5, 6)
        .violations()
        .isEmpty();
    set("a", 0, 1)
        .call(Kind.DELETE, null, null, null, 2, NEVER)
        .get("a", 3, 4)
        .swap(null, "b", "b", 5, 6)
        .call(Kind.DELETE, null, null, "true", 7, 8)
        .get(null, 9, 10)
        .violations()
        .isEmpty();
  }

  @Test
  void findsAValueThatAQueueLost() {
    push("a", 0, 1).pop(null, 2, 3).violations().singleElement().asString().contains("empty");
    push("a", 0, 1).pop(null, 2, 3).pop("a", 4, 5).violations().hasSize(1);
    push("a", 0, 1)
        .push("b", 0, 1)
        .call(Kind.POP, null, null, null, 2, NEVER)
        .pop(null, 3, 4)
        .violations()
        .hasSize(1);
  }

  @Test
  void findsAValueThatWasPoppedTwiceOrNotPushed() {
    push("a", 0, 1).pop("a", 2, 3).pop("a", 2, 3).violations().hasSize(1);
    pop("a", 0, 1).push("a", 2, 3).violations().hasSize(1);
    pop("a", 0, 1).violations().hasSize(1);
  }

  @Test
  void findsAQueueThatChangedTheOrder() {
    push("a", 0, 1)
        .push("b", 2, 3)
        .pop("b", 4, 5)
        .pop("a", 6, 7)
        .violations()
        .singleElement()
        .asString()
        .contains("pushed after it");
  }

  @Test
  void passesCorrectQueues() {
    push("a", 0, 5).push("b", 1, 4).pop("b", 6, 7).pop("a", 8, 9).violations().isEmpty();
    push("a", 0, 1).push("b", 2, 3).pop("b", 4, 9).pop("a", 5, 8).violations().isEmpty();
    push("a", 0, 1)
        .call(Kind.POP, null, null, null, 2, NEVER)
        .push("b", 3, NEVER)
        .pop(null, 4, 5)
        .pop("b", 6, 7)
        .violations()
        .isEmpty();
  }

  @Test
  void namesAndBytesOfValuesAreTheSame() {
    for (String name : List.of("1-2", "1-2*100", "1-2*101", "12-34*200000")) {
      assertThat(HistoryValue.name(HistoryValue.bytes(name))).isEqualTo(name);
    }
    byte[] damaged = HistoryValue.bytes("1-2*101");
    damaged[100] ^= 1;
    assertThat(HistoryValue.name(damaged)).isEqualTo("101 wrong bytes");
    assertThat(HistoryValue.name(new byte[5])).isEqualTo("5 wrong bytes");
  }
}
