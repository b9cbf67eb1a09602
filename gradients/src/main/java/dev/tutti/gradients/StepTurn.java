package dev.tutti.gradients;

import dev.tutti.ProcessGroup;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The right to take a step over a group, which one reducer has at a time. Ranks may form the
 * buckets of two reducers in different orders, and would then add gradients of different models.
 */
final class StepTurn {
  private static final Map<ProcessGroup, StepTurn> TURNS =
      Collections.synchronizedMap(new WeakHashMap<>());

  private final AtomicReference<@Nullable GradientReducer> holder = new AtomicReference<>();

  /** Returns the turn of a group. */
  static StepTurn of(ProcessGroup group) {
    return TURNS.computeIfAbsent(group, _ -> new StepTurn());
  }

  /** Takes the turn, which threads of one reducer may do together; false if another has it. */
  boolean take(GradientReducer reducer) {
    GradientReducer held = holder.compareAndExchange(null, reducer);
    return held == null || reducer.equals(held);
  }

  /** Gives the turn back, if the reducer has it. */
  void release(GradientReducer reducer) {
    holder.compareAndSet(reducer, null);
  }
}
