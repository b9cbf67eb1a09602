package dev.tutti.state;

import java.util.List;
import java.util.Map;

/**
 * The state of an object of which each rank holds a part, such as an optimizer that divides its
 * momentum among the ranks.
 *
 * <p>A checkpoint calls the methods on the thread that saves or loads, between two steps.
 */
public interface ShardedState {
  /**
   * Returns what this rank holds. The parts of all ranks together cover each whole tensor, and may
   * overlap where ranks hold the same elements.
   */
  List<StatePart> parts();

  /** Returns numbers that are the same on all ranks, such as the number of steps taken. */
  Map<String, Long> counters();

  /**
   * Takes over loaded state, after the elements of {@link #parts} were overwritten.
   *
   * @param counters the saved counters
   * @throws IllegalArgumentException if a counter is missing or has an impossible value
   */
  void restored(Map<String, Long> counters);
}
