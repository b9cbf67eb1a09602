package dev.tutti.testing;

import dev.tutti.ProcessGroup;
import dev.tutti.Store;
import dev.tutti.fake.CallRecorder;
import dev.tutti.fake.Faults;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolutionException;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.junit.jupiter.api.extension.TestTemplateInvocationContextProvider;
import org.junit.platform.commons.support.AnnotationSupport;

/** The extension that gives JUnit the invocations of {@link World} tests. */
final class WorldExtension implements TestTemplateInvocationContextProvider, ParameterResolver {
  private static final Set<Class<?>> RANK_TYPES =
      Set.of(ProcessGroup.class, Store.class, Faults.class, CallRecorder.class);

  @Override
  public boolean supportsTestTemplate(ExtensionContext context) {
    return true;
  }

  @Override
  public Stream<TestTemplateInvocationContext> provideTestTemplateInvocationContexts(
      ExtensionContext context) {
    Method method = context.getRequiredTestMethod();
    return WorldPlan.of(method, context.getRequiredTestClass()).stream()
        .flatMap(
            plan ->
                plan.seeds() == 0
                    ? Stream.of(new Invocation(method, plan.toString(), new WorldInterceptor(plan)))
                    : SeedInterceptor.of(plan, context)
                        .map(each -> new Invocation(method, each.toString(), each)));
  }

  /**
   * Claims parameters for ranks where there is no rank, so that the user sees why they cannot be
   * resolved.
   */
  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    return parameter.getParameter().getType() == ProcessGroup.class
        && !AnnotationSupport.isAnnotated(parameter.getDeclaringExecutable(), World.class);
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    throw new ParameterResolutionException(
        "a ProcessGroup exists on ranks only: annotate "
            + parameter.getDeclaringExecutable().getName()
            + " with @World, without @Test, or remove the parameter");
  }

  private static boolean isRankParameter(ParameterContext parameter) {
    return RANK_TYPES.contains(parameter.getParameter().getType())
        || parameter.isAnnotated(Rank.class);
  }

  /** An invocation of a test method on all ranks of one world. */
  private record Invocation(Method method, String world, InvocationInterceptor interceptor)
      implements TestTemplateInvocationContext, ParameterResolver {
    @Override
    public String getDisplayName(int invocationIndex) {
      return method.getName() + " " + world;
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
      return List.of(this, interceptor);
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
      return parameter.getDeclaringExecutable().equals(method) && isRankParameter(parameter);
    }

    /** Returns a stand-in; each rank gets its own value when it runs. */
    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
      Class<?> type = parameter.getParameter().getType();
      if (parameter.isAnnotated(Rank.class) && type != int.class) {
        throw new ParameterResolutionException("a @Rank parameter must be an int, not " + type);
      }
      return RankArguments.standIn(type);
    }
  }
}
