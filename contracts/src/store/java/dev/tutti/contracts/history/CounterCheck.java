package dev.tutti.contracts.history;

import static java.util.Comparator.comparingInt;
import static java.util.Comparator.comparingLong;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** A check that each answered addition was applied once, and each other one at most once. */
final class CounterCheck {
  private CounterCheck() {}

  /** Returns the violations in the calls of one counter, whose additions are of 1 or 0. */
  static List<String> violations(List<HistoryCall> calls) {
    List<String> found = new ArrayList<>();
    List<HistoryCall> inOrder =
        calls.stream()
            .filter(HistoryCall::isAnswered)
            .sorted(
                comparingLong(CounterCheck::result)
                    .thenComparing(comparingInt(CounterCheck::delta).reversed())
                    .thenComparingLong(HistoryCall::invoked))
            .toList();
    long[] unanswered =
        calls.stream()
            .filter(call -> !call.isAnswered() && delta(call) != 0)
            .mapToLong(HistoryCall::invoked)
            .sorted()
            .toArray();
    long answered = 0;
    long last = 0;
    for (HistoryCall call : inOrder) {
      answered += delta(call);
      if (delta(call) != 0 && result(call) == last) {
        found.add("two additions had the result " + last + ", the second is " + call);
      }
      last = result(call);
      long excess = last - answered;
      if (excess > 0 && (excess > unanswered.length || !begun(unanswered, excess, call))) {
        found.add(
            "%d is more than the %d answered additions up to it and those without an answer: %s"
                .formatted(last, answered, call));
      }
    }
    checkTimes(inOrder, found);
    return found;
  }

  private static boolean begun(long[] unanswered, long count, HistoryCall before) {
    return unanswered[(int) count - 1] < before.returned();
  }

  /** Checks that no call ended with more than a call that began later. */
  private static void checkTimes(List<HistoryCall> inOrder, List<String> found) {
    HistoryCall first = null;
    for (HistoryCall call : inOrder.reversed()) {
      if (first != null && first.precedes(call)) {
        found.add("%s ended before %s began, which has a smaller result".formatted(first, call));
      }
      first = first == null || call.returned() < first.returned() ? call : first;
    }
  }

  private static long result(HistoryCall call) {
    return Long.parseLong(Objects.requireNonNull(call.result()));
  }

  private static int delta(HistoryCall call) {
    return Integer.parseInt(Objects.requireNonNull(call.value()));
  }
}
