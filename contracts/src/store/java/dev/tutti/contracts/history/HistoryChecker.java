package dev.tutti.contracts.history;

import dev.tutti.contracts.history.HistoryCall.Kind;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * A checker of histories: counters, registers and queues must look as if each call took effect at
 * one time between its begin and its end.
 *
 * <p>Each pushed value, and each value written to one register, must be unique.
 */
public final class HistoryChecker {
  private HistoryChecker() {}

  /**
   * Returns what no correct store would have answered.
   *
   * @param history all calls, in any order
   * @return a sentence for each violation; empty if the history is correct
   */
  public static List<String> violations(List<HistoryCall> history) {
    Map<String, List<HistoryCall>> keys =
        history.stream()
            .collect(
                Collectors.groupingBy(
                    call -> family(call.kind()) + " " + call.key(),
                    TreeMap::new,
                    Collectors.toList()));
    List<String> found = new ArrayList<>();
    keys.forEach(
        (name, calls) -> {
          List<String> here =
              switch (family(calls.getFirst().kind())) {
                case "counter" -> CounterCheck.violations(calls);
                case "queue" -> QueueCheck.violations(calls);
                default -> RegisterCheck.violations(calls);
              };
          here.forEach(violation -> found.add(name + ": " + violation));
        });
    return found;
  }

  private static String family(Kind kind) {
    return switch (kind) {
      case ADD -> "counter";
      case PUSH, POP -> "queue";
      case SET, GET, COMPARE_SET, DELETE -> "register";
    };
  }
}
