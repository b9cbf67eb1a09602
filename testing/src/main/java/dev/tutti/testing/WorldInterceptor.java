package dev.tutti.testing;

import dev.tutti.fake.CallRecorder;
import dev.tutti.fake.Faults;
import dev.tutti.spi.BackendProvider;
import java.lang.reflect.Method;
import org.junit.jupiter.api.extension.ExtensionConfigurationException;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;
import org.junit.platform.commons.support.ReflectionSupport;

/** The interceptor that runs the body of a {@link World} test on all ranks instead of once. */
final class WorldInterceptor implements InvocationInterceptor {
  private final WorldPlan plan;

  WorldInterceptor(WorldPlan plan) {
    this.plan = plan;
  }

  @Override
  public void interceptTestTemplateMethod(
      Invocation<Void> invocation,
      ReflectiveInvocationContext<Method> call,
      ExtensionContext context)
      throws Throwable {
    invocation.skip();
    Method method = call.getExecutable();
    RankArguments arguments = new RankArguments(method, call.getArguments());
    BackendProvider provider = plan.provider();
    LeakCheck leaks = LeakCheck.of(context);
    if (plan.processes()) {
      refuse(arguments, Faults.class);
      refuse(arguments, CallRecorder.class);
      new RankProcesses(plan, method, context.getRequiredTestClass()).run();
      return;
    }
    Object test = call.getTarget().orElseThrow();
    arguments
        .world(plan, provider)
        .withThreads(leaks.newThreads(method.getName() + " " + plan))
        .run(group -> ReflectionSupport.invokeMethod(method, test, arguments.of(group)));
  }

  private static void refuse(RankArguments arguments, Class<?> type) {
    if (arguments.has(type)) {
      throw new ExtensionConfigurationException(
          type.getSimpleName() + " works only with threads, not with processes = true");
    }
  }
}
