package dev.tutti.testing;

import java.lang.reflect.Method;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.platform.commons.support.AnnotationSupport;

/**
 * The condition that disables those tests of a {@link Sampled} class that the fast tier does not
 * draw.
 */
final class SampledExtension implements ExecutionCondition {
  @Override
  public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
    boolean runs =
        !TestTier.isFast()
            || context.getTestMethod().isEmpty()
            || draws(context.getRequiredTestClass(), context.getRequiredTestMethod());
    return runs
        ? ConditionEvaluationResult.enabled("drawn")
        : ConditionEvaluationResult.disabled("the full tier runs it");
  }

  /** Tells whether the fast tier runs a test of a suite. */
  static boolean draws(Class<?> suite, Method test) {
    return AnnotationSupport.findAnnotation(suite, Sampled.class)
        .map(sampled -> TestTier.lot(suite, test, sampled.of()) == 0)
        .orElse(true);
  }
}
