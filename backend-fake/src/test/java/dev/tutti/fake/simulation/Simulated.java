package dev.tutti.fake.simulation;

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

/**
 * Runs a test as the main thread of a {@link Simulation}, once for each of several seeds. A wait
 * for real time fails it.
 */
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@TestTemplate
@ExtendWith(Simulated.Seeds.class)
public @interface Simulated {
  /** The number of seeds, which are 0, 1 and so on. */
  int seeds() default 10;

  /** A test class with something to do in the simulation before and after each test that passes. */
  interface Fixture {
    void open() throws Exception;

    void close() throws Exception;
  }

  /** Makes an invocation for each seed. */
  final class Seeds implements TestTemplateInvocationContextProvider {
    @Override
    public boolean supportsTestTemplate(ExtensionContext context) {
      return true;
    }

    @Override
    public Stream<TestTemplateInvocationContext> provideTestTemplateInvocationContexts(
        ExtensionContext context) {
      int seeds =
          AnnotationSupport.findAnnotation(context.getRequiredTestMethod(), Simulated.class)
              .orElseThrow()
              .seeds();
      return IntStream.range(0, Integer.getInteger("tutti.seeds", seeds)).mapToObj(Run::new);
    }
  }

  /**
   * The invocation with a seed.
   *
   * @param seed what decides the order of threads
   */
  record Run(long seed) implements TestTemplateInvocationContext, InvocationInterceptor {
    @Override
    public String getDisplayName(int index) {
      return "seed " + seed;
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
      Simulation.run(
          seed,
          () -> {
            if (call.getTarget().orElseThrow() instanceof Fixture fixture) {
              fixture.open();
              Void _ = invocation.proceed();
              fixture.close();
            } else {
              Void _ = invocation.proceed();
            }
          });
    }
  }
}
