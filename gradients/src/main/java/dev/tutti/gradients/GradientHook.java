package dev.tutti.gradients;

import dev.tutti.ProcessGroup;

/**
 * Reduces a bucket of gradients over all ranks (c10d: a communication hook).
 *
 * <p>It is called once for each bucket of a step, in the order of their indices, by one thread at a
 * time: the reducer's own for host memory, the one that marked the last gradient for memory of a
 * device. All ranks must make the same calls of the group. What it throws fails the step on all
 * ranks.
 */
@FunctionalInterface
public interface GradientHook {
  /** Takes the mean over all ranks by one all-reduce, without a copy. */
  GradientHook ALL_REDUCE = (bucket, group) -> group.allReduce(bucket.tensor(), bucket.mean());

  /**
   * Replaces the bucket's content by its mean over all ranks.
   *
   * @param bucket the gradients of this rank
   * @param group the reducer's
   */
  void reduce(GradientBucket bucket, ProcessGroup group);
}
