package dev.tutti.testing;

import java.lang.reflect.Method;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * The condition that disables those tests of a {@link Sampled} class that the fast tier does not
 * draw.
 */
final class SampledExtension implements ExecutionCondition {
  private static final int ONE_IN = 3;

  @Override
  public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
    boolean runs =
        !TestTier.isFast()
            || context.getTestMethod().isEmpty()
            || draws(context.getRequiredTestClass(), context.getRequiredTestMethod());
    return runs
        ? ConditionEvaluationResult.enabled("drawn")
        : ConditionEvaluationResult.disabled("runs only in the full tier");
  }

  /** Tells whether the fast tier runs a test of a suite. */
  static boolean draws(Class<?> suite, Method test) {
    return !suite.isAnnotationPresent(Sampled.class) || TestTier.lot(suite, test, ONE_IN) == 0;
  }
}
