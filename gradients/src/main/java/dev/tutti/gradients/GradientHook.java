package dev.tutti.gradients;

import dev.tutti.CallOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.Work;
import java.util.List;

/**
 * A reduction of a bucket of gradients over all ranks (c10d: a communication hook).
 *
 * <p>A hook is called once for each bucket of a step, in the order of their indices, by one thread
 * at a time. If all parameters are in host memory, this is the reducer's own thread; otherwise it
 * is the thread that marked the last gradient, and the current stream is the reducer's, unless
 * there is none. All ranks must make the same calls on the group. An exception that the hook throws
 * fails the step on all ranks.
 */
@FunctionalInterface
public interface GradientHook {
  /** A hook that takes the mean over all ranks with one all-reduce, without a copy. */
  GradientHook ALL_REDUCE =
      (bucket, group) -> {
        CallOptions options = bucket.callOptions();
        if (options.isBesideComputation()) {
          Work _ = group.allReduce(bucket.tensor(), bucket.mean(), options);
        } else {
          group.allReduce(bucket.tensor(), bucket.mean());
        }
      };

  /**
   * Replaces the bucket's content with its mean over all ranks.
   *
   * @param bucket the gradients of this rank
   * @param group the reducer's group
   */
  void reduce(GradientBucket bucket, ProcessGroup group);

  /**
   * Checks, before the ranks of a new reducer meet, that this hook can reduce the gradients of its
   * parameters; accepts all unless it is overridden.
   *
   * @param parameters the parameters
   * @throws IllegalArgumentException if it cannot, with the reason
   */
  default void requireSupported(List<Tensor> parameters) {}
}
