package dev.tutti.contracts;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.OpType;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.ExtensionConfigurationException;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.junit.jupiter.api.extension.TestTemplateInvocationContextProvider;
import org.junit.platform.commons.support.AnnotationSupport;

/**
 * The extension that runs a {@link ContractTest} once for each world size, or gives the reason why
 * it does not.
 */
final class ContractExtension implements TestTemplateInvocationContextProvider, ExecutionCondition {
  /*
   * The numbers of ranks that the fast tier tests with: one of them for each test of a suite,
   * chosen by their names. Each suite thus gets both, since a single number could hide what a rank
   * in the middle does; so does each test that is in several suites.
   */
  private static final List<Integer> FEW_RANKS = List.of(2, 3);

  @Override
  public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
    ContractTest test = annotation(context);
    ContractSubject subject = subject(context);
    String name = "backend '" + subject.provider().name() + "'";
    Capabilities capabilities = subject.capabilities();
    for (OpType needed : test.needs()) {
      if (!capabilities.has(needed)) {
        return ConditionEvaluationResult.disabled(name + " does not declare " + needed.label());
      }
    }
    for (DType needed : test.types()) {
      if (!capabilities.movable().contains(needed)) {
        return ConditionEvaluationResult.disabled(
            name + " does not declare dtype " + needed.label());
      }
    }
    for (Feature needed : test.features()) {
      if (!capabilities.has(needed)) {
        return ConditionEvaluationResult.disabled(name + " does not declare " + needed);
      }
    }
    if ((test.movesData() || test.mismatches()) && !subject.provider().movesData()) {
      return ConditionEvaluationResult.disabled(name + " moves no data between ranks");
    }
    if (test.blocking() && (capabilities.has(Feature.STREAM_ORDERED) || !subject.isOnHost())) {
      return ConditionEvaluationResult.disabled(
          "calls of " + name + " return before they are complete");
    }
    if (test.onHost() && !subject.isOnHost()) {
      return ConditionEvaluationResult.disabled(name + " has no tensors in host memory");
    }
    if (test.mismatches() && !subject.detectsMismatches()) {
      return ConditionEvaluationResult.disabled(name + " does not detect mismatched calls");
    }
    if (sizes(context).isEmpty()) {
      String most = greatest(test) < Integer.MAX_VALUE ? " to " + greatest(test) : "";
      return ConditionEvaluationResult.disabled(
          "needs %s%s ranks, but the world sizes of %s are %s"
              .formatted(smallest(test), most, name, Arrays.toString(subject.worldSizes())));
    }
    return ConditionEvaluationResult.enabled("all it needs is declared");
  }

  @Override
  public boolean supportsTestTemplate(ExtensionContext context) {
    return true;
  }

  @Override
  public Stream<TestTemplateInvocationContext> provideTestTemplateInvocationContexts(
      ExtensionContext context) {
    ContractSubject subject = subject(context);
    return sizes(context).stream().map(size -> new Sized(new ContractWorld(subject, size)));
  }

  private static List<Integer> sizes(ExtensionContext context) {
    List<Integer> all = sizes(annotation(context), subject(context).worldSizes());
    return TestTier.isFast()
        ? few(all, context.getRequiredTestClass(), context.getRequiredTestMethod())
        : all;
  }

  /** Returns the numbers of ranks for a test. */
  static List<Integer> sizes(ContractTest test, int[] worldSizes) {
    return Arrays.stream(worldSizes)
        .filter(size -> size >= smallest(test) && size <= greatest(test))
        .sorted()
        .limit(test.once() ? 1 : Long.MAX_VALUE)
        .boxed()
        .toList();
  }

  private static int smallest(ContractTest test) {
    return Math.max(test.minSize(), test.mismatches() ? 2 : 1);
  }

  private static int greatest(ContractTest test) {
    return Math.min(test.maxSize(), test.mismatches() ? 3 : Integer.MAX_VALUE);
  }

  /**
   * Returns the single number of ranks that the fast tier picks from those of a test, or an empty
   * list if there are none.
   */
  static List<Integer> few(List<Integer> all, Class<?> suite, Method test) {
    List<Integer> few = all.stream().filter(FEW_RANKS::contains).toList();
    List<Integer> lots = few.isEmpty() ? all : few;
    return lots.isEmpty() ? lots : List.of(lots.get(TestTier.lot(suite, test, lots.size())));
  }

  private static ContractTest annotation(ExtensionContext context) {
    return AnnotationSupport.findAnnotation(context.getElement(), ContractTest.class)
        .orElseThrow(
            () -> new ExtensionConfigurationException("no @ContractTest: " + context.getElement()));
  }

  private static ContractSubject subject(ExtensionContext context) {
    Object test = context.getRequiredTestInstance();
    if (test instanceof GroupContract contract) {
      return contract.subject();
    }
    throw new ExtensionConfigurationException(
        "@ContractTest needs a class that implements GroupContract, not " + test.getClass());
  }

  /** An invocation with one number of ranks. */
  private record Sized(ContractWorld world)
      implements TestTemplateInvocationContext, ParameterResolver {
    @Override
    public String getDisplayName(int invocationIndex) {
      return "[size=" + world.size() + "]";
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
      return List.of(this);
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
      return parameter.getParameter().getType() == ContractWorld.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
      return world;
    }
  }
}
