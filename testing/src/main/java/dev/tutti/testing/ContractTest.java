package dev.tutti.testing;

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
 * Marks a test of a contract suite; it runs once for each of the subject's world sizes (in the fast
 * {@link TestTier} for fewer) and gets a {@link ContractWorld}. Where the backend does not declare
 * what the test needs it is skipped, with the reason; that such calls are refused is tested by
 * {@link CapabilitiesContract}.
 */
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@Documented
@TestTemplate
@ExtendWith(ContractExtension.class)
public @interface ContractTest {
  /** Returns the operations that the test cannot do without. */
  OpType[] needs() default {};

  /** Returns the types that the test moves beside float32 and int32. */
  DType[] types() default {};

  /** Returns the features that the test cannot do without. */
  Feature[] features() default {};

  /** Tells whether the test needs synchronous calls that return when done, as on host tensors. */
  boolean blocking() default false;

  /** Tells whether the test needs tensors in host memory. */
  boolean onHost() default false;

  /** Tells whether the test needs a backend that notices calls that do not fit each other. */
  boolean mismatches() default false;

  /** Returns the smallest number of ranks for which the test means something. */
  int minSize() default 1;

  /** Returns the largest number of ranks with which the test ends soon. */
  int maxSize() default Integer.MAX_VALUE;

  /** Tells whether one number of ranks, the smallest, is enough. */
  boolean once() default false;
}
