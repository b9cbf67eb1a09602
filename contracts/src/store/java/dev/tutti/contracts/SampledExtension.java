package dev.tutti.contracts;

import java.lang.reflect.Method;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;

/** The condition that disables those {@link Sampled} tests that the fast tier does not draw. */
final class SampledExtension implements ExecutionCondition {
  private static final int ONE_IN = 5;
  private static final Pattern INVOCATION =
      Pattern.compile("\\[test-template-invocation:#(\\d+)]$");

  @Override
  public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
    boolean runs = !TestTier.isFast() || context.getTestMethod().isEmpty() || draws(context);
    return runs
        ? ConditionEvaluationResult.enabled("drawn")
        : ConditionEvaluationResult.disabled("runs only in the full tier");
  }

  private static boolean draws(ExtensionContext context) {
    Method test = context.getRequiredTestMethod();
    return draws(context.getRequiredTestClass(), test)
        && drawsInvocation(test, context.getUniqueId());
  }

  /** Returns whether the fast tier runs a test of a suite. */
  static boolean draws(Class<?> suite, Method test) {
    return !suite.isAnnotationPresent(Sampled.class) || TestTier.lot(suite, test, ONE_IN) == 0;
  }

  /** Returns whether the fast tier runs an invocation of a parameterized test. */
  static boolean drawsInvocation(Method test, String uniqueId) {
    Matcher invocation = INVOCATION.matcher(uniqueId);
    return !test.isAnnotationPresent(Sampled.class)
        || !invocation.find()
        || Integer.parseInt(invocation.group(1)) % ONE_IN == 1;
  }
}
