package dev.tutti.contracts.history;

import static java.util.Comparator.comparingLong;

import dev.tutti.contracts.history.HistoryCall.Kind;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * A check that each pushed value is popped at most once and in order, and that a queue with a value
 * is not empty. A pop without an answer may have taken a value.
 */
final class QueueCheck {
  private final List<String> found = new ArrayList<>();
  private final Map<String, HistoryCall> pops = new HashMap<>();
  private final List<HistoryCall> pushes;
  private final List<HistoryCall> calls;

  private QueueCheck(List<HistoryCall> calls) {
    this.calls = calls;
    this.pushes = calls.stream().filter(call -> call.kind() == Kind.PUSH).toList();
  }

  /** Returns the violations in the calls of one queue. */
  static List<String> violations(List<HistoryCall> calls) {
    QueueCheck check = new QueueCheck(calls);
    check.checkValues();
    check.checkOrder();
    check.checkEmpty();
    return check.found;
  }

  private void checkValues() {
    Map<String, HistoryCall> pushed = new HashMap<>();
    pushes.forEach(push -> pushed.put(value(push), push));
    for (HistoryCall pop : calls) {
      if (pop.kind() == Kind.POP && pop.result() != null) {
        HistoryCall push = pushed.get(pop.result());
        HistoryCall other = pops.put(pop.result(), pop);
        if (push == null || pop.precedes(push)) {
          found.add("nobody had pushed what was popped by " + pop);
        }
        if (other != null) {
          found.add("the same value was popped twice: %s and %s".formatted(other, pop));
        }
      }
    }
  }

  /** Checks that no value was popped before one that had been pushed before it. */
  private void checkOrder() {
    List<HistoryCall> popped =
        pushes.stream().filter(push -> pops.containsKey(value(push))).toList();
    List<HistoryCall> byEnd = popped.stream().sorted(comparingLong(HistoryCall::returned)).toList();
    int ended = 0;
    HistoryCall last = null; // the pop that began last, of the values pushed before
    for (HistoryCall push : popped.stream().sorted(comparingLong(HistoryCall::invoked)).toList()) {
      for (; byEnd.get(ended).precedes(push); ended++) {
        HistoryCall pop = pop(byEnd.get(ended));
        last = last == null || pop.invoked() > last.invoked() ? pop : last;
      }
      if (last != null && pop(push).precedes(last)) {
        found.add("%s came before %s, but was pushed after it".formatted(pop(push), last));
      }
    }
  }

  /**
   * Checks that what an empty queue did not hold was popped, or that pops without answer may be.
   */
  private void checkEmpty() {
    for (HistoryCall empty : calls) {
      if (empty.kind() == Kind.POP && empty.isAnswered() && empty.result() == null) {
        List<HistoryCall> missing =
            pushes.stream().filter(push -> push.precedes(empty) && !isPopped(push, empty)).toList();
        long unanswered =
            calls.stream()
                .filter(call -> call.kind() == Kind.POP && !call.isAnswered())
                .filter(call -> call.invoked() < empty.returned())
                .count();
        boolean poppedLater = missing.stream().anyMatch(push -> pops.containsKey(value(push)));
        if (poppedLater || missing.size() > unanswered) {
          found.add("%s found the queue empty after %s".formatted(empty, missing));
        }
      }
    }
  }

  private boolean isPopped(HistoryCall push, HistoryCall empty) {
    HistoryCall pop = pops.get(value(push));
    return pop != null && !empty.precedes(pop);
  }

  private HistoryCall pop(HistoryCall push) {
    return Objects.requireNonNull(pops.get(value(push)));
  }

  private static String value(HistoryCall push) {
    return Objects.requireNonNull(push.value());
  }
}
