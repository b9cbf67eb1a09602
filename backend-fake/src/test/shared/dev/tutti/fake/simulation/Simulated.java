package dev.tutti.fake.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.lang.reflect.Method;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.TestTemplate;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.junit.jupiter.api.extension.TestTemplateInvocationContextProvider;
import org.junit.platform.commons.support.AnnotationSupport;
import org.junit.platform.commons.support.ReflectionSupport;

/**
 * Runs a test as the main thread of a {@link Simulation}, once for each of several seeds, and once
 * more, which must give the same trace. Each run has an instance of the test class of its own. A
 * wait for real time fails it. Its class must be isolated.
 */
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@TestTemplate
@ExtendWith(Simulated.Seeds.class)
public @interface Simulated {
  /**
   * The number of seeds, which are 0, 1 and so on; {@code -Dtutti.seeds=…} sets another, {@code
   * -Dtutti.firstSeed=…} with which to begin.
   */
  int seeds() default 10;

  /** A test class with something to do in the simulation before and after each test that passes. */
  interface Fixture {
    void open() throws Exception;

    void close() throws Exception;
  }

  /** Makes an invocation for each seed, or, of more than a hundred, for each hundred. */
  final class Seeds implements TestTemplateInvocationContextProvider {
    private static final int BLOCK = 100;
    private static final int FIRST = Integer.getInteger("tutti.firstSeed", 0);

    @Override
    public boolean supportsTestTemplate(ExtensionContext context) {
      return true;
    }

    @Override
    public Stream<TestTemplateInvocationContext> provideTestTemplateInvocationContexts(
        ExtensionContext context) {
      int declared =
          AnnotationSupport.findAnnotation(context.getRequiredTestMethod(), Simulated.class)
              .orElseThrow()
              .seeds();
      int seeds = Integer.getInteger("tutti.seeds", declared);
      int block = seeds > BLOCK ? BLOCK : 1;
      int end = FIRST + seeds;
      return IntStream.iterate(FIRST, first -> first < end, first -> first + block)
          .mapToObj(first -> new Run(first, Math.min(end, first + block)));
    }
  }

  /**
   * The invocation with some seeds.
   *
   * @param first the first one
   * @param end the one behind the last
   */
  record Run(long first, long end) implements TestTemplateInvocationContext, InvocationInterceptor {
    @Override
    public String getDisplayName(int index) {
      return end - first == 1 ? "seed " + first : "seeds %d to %d".formatted(first, end - 1);
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
      return List.of(this);
    }

    @Override
    public void interceptTestTemplateMethod(
        Invocation<Void> invocation,
        ReflectiveInvocationContext<Method> call,
        ExtensionContext context)
        throws Throwable {
      invocation.skip();
      for (long seed = first; seed < end; seed++) {
        try {
          SimulatedProgram.Outcome once = run(seed, call);
          assertThat(run(seed, call)).as("the same seed again").isEqualTo(once);
        } catch (Throwable e) {
          e.addSuppressed(new AssertionError("this was seed " + seed));
          throw e;
        }
      }
    }

    private static SimulatedProgram.Outcome run(long seed, ReflectiveInvocationContext<Method> call)
        throws Throwable {
      Object test = ReflectionSupport.newInstance(call.getTargetClass());
      Object[] arguments = call.getArguments().toArray();
      return Simulation.run(
          seed,
          () -> {
            if (test instanceof Fixture fixture) {
              fixture.open();
              Object _ = ReflectionSupport.invokeMethod(call.getExecutable(), test, arguments);
              fixture.close();
            } else {
              Object _ = ReflectionSupport.invokeMethod(call.getExecutable(), test, arguments);
            }
          });
    }
  }
}
