package dev.tutti.contracts.history;

import static java.util.Comparator.comparingLong;

import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** A check that a register is linearizable. */
final class RegisterCheck {
  /*
   * The search of Wing and Gong with the memory of Lowe: a state is the set of calls that have
   * taken effect, and the value after them. From each state, any call may be next that began before
   * the first of the other remaining calls ended. A state that was met before is not searched again.
   * A call without an answer remains possible for ever and need not take effect; it is tried last.
   */
  private static final int MOST_STATES = 2_000_000;

  private final List<HistoryCall> calls;
  private final Set<State> met = new HashSet<>();
  private final Deque<State> open = new ArrayDeque<>();

  private RegisterCheck(List<HistoryCall> calls) {
    this.calls = calls.stream().sorted(comparingLong(HistoryCall::invoked)).toList();
  }

  private record State(BitSet done, @Nullable String value) {}

  /** Returns the violation in the calls of one register, if there is one. */
  static List<String> violations(List<HistoryCall> calls) {
    return new RegisterCheck(calls).search();
  }

  private List<String> search() {
    BitSet answered = new BitSet();
    for (int i = 0; i < calls.size(); i++) {
      answered.set(i, calls.get(i).isAnswered());
    }
    State furthest = new State(new BitSet(), null);
    visit(furthest);
    while (!open.isEmpty()) {
      if (met.size() > MOST_STATES) {
        return List.of("not decided after %d states of %s".formatted(MOST_STATES, calls));
      }
      State state = open.pop();
      furthest = state.done.cardinality() > furthest.done.cardinality() ? state : furthest;
      BitSet missing = (BitSet) answered.clone();
      missing.andNot(state.done);
      if (missing.isEmpty()) {
        return List.of();
      }
      visitNext(state, false);
      visitNext(state, true);
    }
    return List.of(
        "not linearizable; no order has more calls than one that ends with %s and misses %s"
            .formatted(furthest.value, remaining(furthest)));
  }

  private List<HistoryCall> remaining(State state) {
    BitSet left = new BitSet();
    left.set(0, calls.size());
    left.andNot(state.done);
    return left.stream().mapToObj(calls::get).toList();
  }

  private void visit(State state) {
    if (met.add(state)) {
      open.push(state);
    }
  }

  /** Visits the states after each call that may be next and is answered, or is not. */
  private void visitNext(State state, boolean answered) {
    long firstEnd = HistoryCall.NEVER;
    for (int i = state.done.nextClearBit(0);
        i < calls.size() && calls.get(i).invoked() <= firstEnd;
        i = state.done.nextClearBit(i + 1)) {
      HistoryCall call = calls.get(i);
      firstEnd = Math.min(firstEnd, call.returned());
      String value = after(call, state.value);
      boolean possible =
          call.isAnswered() ? allows(call, state.value) : !Objects.equals(value, state.value);
      if (call.isAnswered() == answered && possible) {
        BitSet done = (BitSet) state.done.clone();
        done.set(i);
        visit(new State(done, value));
      }
    }
  }

  private static @Nullable String after(HistoryCall call, @Nullable String value) {
    return switch (call.kind()) {
      case SET -> call.value();
      case COMPARE_SET -> Objects.equals(call.expected(), value) ? call.value() : value;
      case DELETE -> null;
      default -> value;
    };
  }

  private static boolean allows(HistoryCall call, @Nullable String value) {
    return switch (call.kind()) {
      case SET -> true;
      case DELETE -> Boolean.toString(value != null).equals(call.result());
      default -> Objects.equals(call.result(), after(call, value));
    };
  }
}
