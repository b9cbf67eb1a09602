package dev.tutti.cuda;

import dev.tutti.BackendException;
import dev.tutti.Settings;
import dev.tutti.cuda.nccl.NcclLibrary;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Skips a class if there is no GPU or no NCCL. */
final class GpuNccl implements ExecutionCondition {
  @Override
  public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
    if (Cuda.unusableReason().isPresent()) {
      return ConditionEvaluationResult.disabled(
          "no GPU here: " + Cuda.unusableReason().orElseThrow());
    }
    try {
      return ConditionEvaluationResult.enabled(
          NcclLibrary.get(Settings.fromEnvironment()).describe());
    } catch (BackendException e) {
      return ConditionEvaluationResult.disabled(String.valueOf(e.getMessage()));
    }
  }
}
