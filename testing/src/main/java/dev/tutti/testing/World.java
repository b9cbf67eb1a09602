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
 * Marks a test method that runs once on every rank of a group.
 *
 * {@snippet file="WorldSnippetsTest.java" region="world"}
 *
 * <p>On a method, this annotation replaces {@code @Test}. Every combination of sizes and backends
 * is one invocation, named like {@code ranksAddUp [size=4, backend=threaded]}. On a class, it sets
 * the defaults for the methods, which are annotated with {@code @World}, too.
 *
 * <p>Ranks are threads of this JVM, named {@code rank-0} and so on, unless {@link #processes()}
 * says otherwise. All of them use the same instance of the test class, which is a good place for
 * shared state. Lifecycle methods run once, not on every rank. The parameters may be {@link
 * dev.tutti.ProcessGroup}, {@link dev.tutti.Store} (the group's), {@link Rank}, and for threads
 * {@link dev.tutti.fake.Faults} and {@link dev.tutti.fake.CallRecorder}.
 *
 * <p>When a rank fails, the groups of all ranks are aborted at once. The test fails with the
 * exception of that rank, to which those of the other ranks are added as suppressed. When the time
 * runs out, the test fails with the stacks and flight records of the ranks that have not ended.
 * After the last test of a class, the class fails if threads outlive their groups or shared memory
 * is left over.
 */
@Target({ElementType.METHOD, ElementType.TYPE, ElementType.ANNOTATION_TYPE})
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@Documented
@TestTemplate
@ExtendWith(WorldExtension.class)
public @interface World {
  /** The {@link #size()} of an annotation that gives none. */
  int NO_SIZE = Integer.MIN_VALUE;

  /** The {@link #timeoutSeconds()} of an annotation that gives none. */
  double NO_TIMEOUT = Double.NEGATIVE_INFINITY;

  /** Returns the number of ranks, at least 1; without it, that of the class counts, or else 2. */
  int size() default NO_SIZE;

  /** Returns several numbers of ranks, which replace {@link #size()}. */
  int[] sizes() default {};

  /** Returns the names of the backends; none means those of the class, or else {@code threaded}. */
  String[] backends() default {};

  /**
   * Returns whether ranks are separate processes. In that case, the backend must be able to connect
   * processes, and the test class needs a constructor without parameters. In each process, a new
   * instance runs the method, without lifecycle methods or other extensions.
   */
  boolean processes() default false;

  /**
   * Returns the number of worlds to simulate, from seed 0 on; 0 means that of the class, or else a
   * world in real time. A seed decides the order of all threads, how long messages to the store
   * take, and random numbers, and time passes only while all threads wait ({@link
   * dev.tutti.fake.simulation.SimulatedProgram}). Each seed is run twice and must do the same in
   * both runs; {@code -Dtutti.seed=17} runs that seed alone. The backend must be {@code threaded},
   * and no other test may run at the same time in the JVM.
   */
  int seeds() default 0;

  /**
   * Returns the deadline of all ranks together, in seconds, more than 0; without it, that of the
   * class counts, or else 30. In a simulation it is simulated time. That of a process begins when
   * it has joined its group, which has as long.
   */
  double timeoutSeconds() default NO_TIMEOUT;
}
