package dev.tutti.testing;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.TestTemplate;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Runs a test method once on every rank of a group.
 *
 * {@snippet file="WorldSnippetsTest.java" region="world"}
 *
 * <p>On a method it takes the place of {@code @Test}. Several sizes and backends multiply into one
 * invocation each, named like {@code ranksAddUp [size=4, backend=threaded]}. On a class it holds
 * the defaults of the methods, which are annotated with {@code @World} too.
 *
 * <p>Ranks are threads of this JVM, named {@code rank-0} and so on, unless {@link #processes()}
 * says otherwise; all use one instance of the test class, which is a good place for what they
 * share. Lifecycle methods run once, not on every rank. Parameters: {@link dev.tutti.ProcessGroup},
 * {@link dev.tutti.Store} (the group's), {@link Rank}, and in threads {@link dev.tutti.fake.Faults}
 * and {@link dev.tutti.fake.CallRecorder}.
 *
 * <p>When a rank fails, the groups of all ranks are aborted at once; the test fails with what that
 * rank threw, and what the others threw is suppressed. When the time is over, the test fails with
 * the stacks and flight records of all ranks. After the class, threads that outlive their groups
 * and shared memory that is left over fail the class.
 */
@Target({ElementType.METHOD, ElementType.TYPE, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@Documented
@TestTemplate
@ExtendWith(WorldExtension.class)
public @interface World {
  /** Returns the number of ranks; 0 takes that of the class, else 2. */
  int size() default 0;

  /** Returns several numbers of ranks, in place of {@link #size()}. */
  int[] sizes() default {};

  /** Returns the names of the backends; none takes those of the class, else {@code threaded}. */
  String[] backends() default {};

  /**
   * Returns whether ranks are processes of their own. Then the backend must be able to connect
   * processes, and the test class needs a constructor without parameters; in each process a new
   * instance runs the method, without lifecycle methods and other extensions.
   */
  boolean processes() default false;

  /** Returns the deadline of all ranks together, in seconds; 0 takes that of the class, else 30. */
  double timeoutSeconds() default 0;
}
