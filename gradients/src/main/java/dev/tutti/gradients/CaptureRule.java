package dev.tutti.gradients;

import org.jspecify.annotations.Nullable;

/** The rule that says which steps can be captured into a CUDA graph. */
final class CaptureRule {
  /** How many steps must be taken before. */
  private static final int EAGER_STEPS = 2;

  private CaptureRule() {}

  /** Returns why a replay of a step would not do what the step does; null if it would. */
  static @Nullable String reasonAgainst(
      ParameterList parameters, ReducerOptions options, long step) {
    if (options.unusedParameters()) {
      return "withUnusedParameters exchanges on the host, in each step, which parameters were used";
    }
    if (options.divisor() != null) {
      return "withUnevenInputs counts on the host, in each step, the ranks that have inputs";
    }
    if (options.digestSteps() > 0) {
      return "withDigest compares parameters on the host";
    }
    if (parameters.all().stream().anyMatch(each -> each.device().isCpu())) {
      return "some parameters are on the host";
    }
    return step > EAGER_STEPS
        ? null
        : "first take %d steps, which form the buckets and the state of hooks"
            .formatted(EAGER_STEPS);
  }
}
