package dev.tutti.gradients.hook;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.state.ShardedState;
import dev.tutti.state.StatePart;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** What the approximations of all parameters keep from step to step, for checkpoints. */
final class LowRankState implements ShardedState {
  private static final String STEP = "step";

  private final ProcessGroup group;
  private final PowerSgdOptions options;
  private final List<String> names;
  private final SortedMap<Integer, LowRankMemory> memories = new TreeMap<>();
  private volatile long lastStep;
  private volatile long stepsBefore;

  /**
   * Creates the state of a reducer that has not taken a step.
   *
   * @throws IllegalArgumentException if names are missing or occur twice
   */
  LowRankState(
      ProcessGroup group, List<String> names, List<Tensor> parameters, PowerSgdOptions options) {
    this.group = group;
    this.options = options;
    this.names = List.copyOf(names);
    if (names.size() != parameters.size() || Set.copyOf(names).size() < names.size()) {
      throw new IllegalArgumentException(
          "%d parameters need as many different names, not %s".formatted(parameters.size(), names));
    }
    for (int i = 0; i < parameters.size(); i++) {
      Tensor parameter = parameters.get(i);
      if (parameter.dtype() == DType.FLOAT32
          && parameter.device().isCpu()
          && options.compresses(parameter)) {
        memories.put(i, new LowRankMemory(parameter, options));
      }
    }
  }

  /** Returns the memory of an approximated parameter. */
  LowRankMemory memory(int parameter, Tensor gradient) {
    @Nullable LowRankMemory memory = memories.get(parameter);
    if (memory == null || !memory.fits(gradient)) {
      throw new IllegalStateException(
          "the state of this hook is that of another reducer: parameter %d is %s here"
              .formatted(parameter, gradient.describe()));
    }
    return memory;
  }

  /** Returns the number of a step since the start of training, given that of the reducer. */
  long begin(long step) {
    lastStep = step;
    return step + stepsBefore;
  }

  @Override
  public List<StatePart> parts() {
    List<StatePart> parts = new ArrayList<>();
    memories.forEach(
        (parameter, memory) -> {
          String name = names.get(parameter);
          if (options.errorFeedback()) {
            long[] shape = {group.size(), memory.rows, memory.columns};
            long first = Math.multiplyExact((long) group.rank(), memory.error.length);
            parts.add(new StatePart("error/" + name, shape, first, Tensor.wrap(memory.error)));
          }
          if (options.warmStart()) {
            long[] shape = {memory.rank, memory.columns};
            parts.add(new StatePart("q/" + name, shape, 0, Tensor.wrap(memory.q)));
          }
        });
    return parts;
  }

  @Override
  public Map<String, Long> counters() {
    return Map.of(STEP, lastStep + stepsBefore);
  }

  @Override
  public void restored(Map<String, Long> counters) {
    Long saved = counters.get(STEP);
    if (saved == null || saved < 0) {
      throw new IllegalArgumentException(
          "the counter '%s' must not be negative or missing in %s".formatted(STEP, counters));
    }
    stepsBefore = saved - lastStep;
    memories.values().forEach(memory -> memory.begun = saved > options.plainSteps());
  }
}
