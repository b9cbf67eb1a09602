package dev.tutti.runtime.failure;

import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * The steps that states have taken: few beside the histories in which they occur, as a step depends
 * on nothing but its input, its time and the state before.
 */
final class KnownSteps {
  private final Map<Long, Stepped> steps = new HashMap<>();
  private final IdentityHashMap<Evidence, Map<Integer, Evidence>> collected =
      new IdentityHashMap<>();

  /**
   * A state, which nothing changes any more.
   *
   * @param hash all that decides how the state acts, mixed to 64 bits
   * @param nextLimit when its next limit passes
   * @param outputs what followed from the step that led to it
   */
  record Stepped(JobState state, long hash, long nextLimit, List<JobOutput> outputs) {
    private static Stepped of(JobState state, List<JobOutput> outputs) {
      StateHash hash = new StateHash();
      state.addTo(hash);
      return new Stepped(state, hash.value(), state.nextLimit(), outputs);
    }
  }

  /** Returns a state that has taken no step. */
  static Stepped first(JobState state) {
    return Stepped.of(state, List.of());
  }

  /** Returns what follows from an input at a time, in nanoseconds of the rank's running time. */
  Stepped after(Stepped before, int rank, long now, boolean stoodStill, JobInput input) {
    StateHash key = new StateHash();
    key.add(2 * rank + (stoodStill ? 1 : 0));
    key.add(before.hash);
    key.add(now);
    key.add(input);
    return steps.computeIfAbsent(
        key.value(),
        _ -> {
          JobState state = new JobState(before.state);
          return Stepped.of(state, state.step(now, stoodStill, input));
        });
  }

  /**
   * Returns the evidence that follows from another and what is published, which a code stands for.
   */
  Evidence collected(Evidence known, int published, Supplier<Evidence> collect) {
    return collected
        .computeIfAbsent(known, _ -> new HashMap<>())
        .computeIfAbsent(published, _ -> collect.get());
  }
}
