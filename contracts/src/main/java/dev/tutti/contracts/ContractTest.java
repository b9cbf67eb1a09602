package dev.tutti.contracts;

import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.OpType;
import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.TestTemplate;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Marks a test of a contract suite, which runs once for each of the subject's world sizes (for
 * fewer in the fast {@link TestTier}) and gets a {@link ContractWorld}. If the backend does not
 * declare what the test needs, the test is skipped with the reason; {@link CapabilitiesContract}
 * tests that such calls are refused.
 */
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@Documented
@TestTemplate
@ExtendWith(ContractExtension.class)
public @interface ContractTest {
  /** Returns the operations that the test requires. */
  OpType[] needs() default {};

  /** Returns the types that the test moves besides float32 and int32. */
  DType[] types() default {};

  /** Returns the features that the test requires. */
  Feature[] features() default {};

  /** Returns whether the test needs data that is moved between ranks. */
  boolean movesData() default false;

  /** Returns whether the test needs synchronous calls that return when done, as on host tensors. */
  boolean blocking() default false;

  /** Returns whether the test needs tensors in host memory. */
  boolean onHost() default false;

  /**
   * Returns whether the test needs a backend that notices calls that do not match; it then runs
   * with 2 and 3 ranks, between which data is moved.
   */
  boolean mismatches() default false;

  /** Returns the smallest number of ranks for which the test is meaningful. */
  int minSize() default 1;

  /** Returns the largest number of ranks with which the test ends in a short time. */
  int maxSize() default Integer.MAX_VALUE;

  /** Returns whether a single number of ranks, the smallest, is enough. */
  boolean once() default false;
}
