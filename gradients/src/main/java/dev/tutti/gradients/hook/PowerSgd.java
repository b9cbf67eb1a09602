package dev.tutti.gradients.hook;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.gradients.GradientBucket;
import dev.tutti.gradients.GradientHook;
import java.util.function.Function;

/**
 * Reduces gradients as products of two narrow matrices (c10d: {@code powerSGD_hook}; T. Vogels, S.
 * P. Karimireddy, M. Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed
 * Optimization", NeurIPS 2019).
 *
 * <p>Of a gradient with two or more dimensions the first one is the rows of a matrix M of n by m;
 * it is approximated by P Q', where P has n by r elements and Q m by r. Where that saves too
 * little, and of fewer dimensions, gradients are reduced as they are. Buckets of float32 are
 * approximated, others reduced as they are. Ranks send r (n + m) elements in place of n m, in three
 * all-reduces for a bucket, and compute 3 r n m multiplications and as many additions.
 *
 * <p>Buckets lie in host memory; after the first approximation of a bucket nothing is allocated.
 * With error feedback a bucket has its size of memory once more.
 */
public final class PowerSgd implements GradientHook {
  private final PowerSgdOptions options;
  private final Function<GradientBucket, LowRankBucket> approximate;

  /**
   * Creates a hook.
   *
   * @param options the same on all ranks
   */
  public PowerSgd(PowerSgdOptions options) {
    this.options = options;
    this.approximate = bucket -> new LowRankBucket(bucket, options);
  }

  /**
   * {@inheritDoc}
   *
   * @throws UnsupportedOperationException if the bucket is one to approximate, on a device
   */
  @Override
  public void reduce(GradientBucket bucket, ProcessGroup group) {
    if (bucket.tensor().dtype() != DType.FLOAT32 || bucket.step() <= options.plainSteps()) {
      group.allReduce(bucket.tensor(), bucket.mean());
      return;
    }
    if (!bucket.tensor().device().isCpu()) {
      throw new UnsupportedOperationException(
          "gradients are approximated on the host, but these are on " + bucket.tensor().device());
    }
    bucket.state(this, approximate).reduce(group);
  }
}
