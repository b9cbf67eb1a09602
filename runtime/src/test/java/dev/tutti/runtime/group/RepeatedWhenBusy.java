package dev.tutti.runtime.group;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.lang.reflect.Method;
import java.time.Duration;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;
import org.junit.platform.commons.support.AnnotationSupport;
import org.junit.platform.commons.support.ReflectionSupport;

/**
 * Says that a test is repeated if it fails while the machine is too busy, as {@link
 * LocalWorld#attempt} tells. The test must leave nothing in its fields.
 */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(RepeatedWhenBusy.Extension.class)
public @interface RepeatedWhenBusy {
  /** The longest time of a test in which no wait for an answer comes to its end. */
  int usualMillis() default 900;

  /** Makes the attempts. */
  final class Extension implements InvocationInterceptor {
    @Override
    public void interceptTestMethod(
        Invocation<Void> invocation,
        ReflectiveInvocationContext<Method> call,
        ExtensionContext context)
        throws Throwable {
      invocation.skip();
      Method method = call.getExecutable();
      Object test = call.getTarget().orElseThrow();
      int usualMillis =
          AnnotationSupport.findAnnotation(method, RepeatedWhenBusy.class)
              .or(() -> AnnotationSupport.findAnnotation(test.getClass(), RepeatedWhenBusy.class))
              .orElseThrow()
              .usualMillis();
      LocalWorld.attempt(
          Duration.ofMillis(usualMillis), () -> ReflectionSupport.invokeMethod(method, test));
    }
  }
}
