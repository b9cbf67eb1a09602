package dev.tutti.testing;

import dev.tutti.fake.ThreadedWorld;
import dev.tutti.fake.simulation.SimulatedProgram;
import dev.tutti.fake.simulation.SimulatedProgram.Outcome;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.ExtensionConfigurationException;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.platform.commons.support.AnnotationSupport;
import org.junit.platform.commons.support.ReflectionSupport;

/**
 * The interceptor that runs the body of a {@link World} test on all ranks of a simulated world.
 *
 * <p>Each seed has two invocations, since only they give the second run an instance of its own. The
 * second fails only if it took other steps than the first.
 */
final class SeedInterceptor implements InvocationInterceptor {
  private static final String ONE_SEED = "tutti.seed";

  private final WorldPlan plan;
  private final long seed;
  private final boolean again;
  private final Map<Long, String> outcomes;

  private SeedInterceptor(WorldPlan plan, long seed, boolean again, Map<Long, String> outcomes) {
    this.plan = plan;
    this.seed = seed;
    this.again = again;
    this.outcomes = outcomes;
  }

  /**
   * Returns the interceptors of all seeds.
   *
   * @throws ExtensionConfigurationException if this JVM cannot simulate, or runs other tests at the
   *     same time
   */
  static Stream<SeedInterceptor> of(WorldPlan plan, ExtensionContext context) {
    SimulatedProgram.unusableReason()
        .ifPresent(
            reason -> {
              throw new ExtensionConfigurationException(
                  "a @World with seeds cannot run: " + reason);
            });
    requireIsolation(context);
    Long one = Long.getLong(ONE_SEED);
    Map<Long, String> outcomes = new ConcurrentHashMap<>();
    LongStream seeds = one == null ? LongStream.range(0, plan.seeds()) : LongStream.of(one);
    return seeds
        .boxed()
        .flatMap(
            seed ->
                Stream.of(
                    new SeedInterceptor(plan, seed, false, outcomes),
                    new SeedInterceptor(plan, seed, true, outcomes)));
  }

  private static void requireIsolation(ExtensionContext context) {
    boolean parallel =
        context
            .getConfigurationParameter("junit.jupiter.execution.parallel.enabled")
            .map(Boolean::parseBoolean)
            .orElse(false);
    Class<?> outermost = context.getRequiredTestClass();
    while (outermost.getEnclosingClass() != null) {
      outermost = outermost.getEnclosingClass();
    }
    if (parallel && !AnnotationSupport.isAnnotated(outermost, Isolated.class)) {
      throw new ExtensionConfigurationException(
          "%s has a @World with seeds, and tests run in parallel: annotate it with @Isolated"
              .formatted(outermost.getSimpleName()));
    }
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
    if (again && !outcomes.containsKey(seed)) {
      return;
    }
    Object test = call.getTarget().orElseThrow();
    ThreadedWorld world = arguments.world(plan, plan.provider());
    Outcome outcome =
        SimulatedProgram.run(
            seed,
            program ->
                world
                    .withTime(program.time())
                    .withOptions(options -> options.withStore(program.store(plan.timeout())))
                    .run(
                        group ->
                            ReflectionSupport.invokeMethod(method, test, arguments.of(group))));
    String steps = "%d steps of hash %x".formatted(outcome.steps(), outcome.hash());
    String before = outcomes.putIfAbsent(seed, steps);
    if (!again && outcome.failure() != null) {
      outcome.failure().addSuppressed(new Repetition(method, seed));
      throw outcome.failure();
    }
    if (before != null && !before.equals(steps)) {
      throw new AssertionError(
          ("seed %d took %s, and then %s, so something else than the seed decides what the test"
                  + " does: real time, random numbers, the order in a hash table, or what tests"
                  + " share")
              .formatted(seed, before, steps));
    }
  }

  /** The line that runs a seed again, among the suppressed exceptions of a failure. */
  private static final class Repetition extends Exception {
    private static final long serialVersionUID = 1L;

    Repetition(Method method, long seed) {
      super(
          "run seed %d alone: mvn test -Dtest='%s#%s' -D%s=%d"
              .formatted(
                  seed,
                  method.getDeclaringClass().getSimpleName(),
                  method.getName(),
                  ONE_SEED,
                  seed),
          null,
          false,
          false);
    }
  }

  @Override
  public String toString() {
    return "[size=%d, seed=%d%s]".formatted(plan.size(), seed, again ? ", again" : "");
  }
}
