package dev.tutti.gradients.hook;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientBucket;
import dev.tutti.gradients.GradientHook;
import dev.tutti.state.ShardedState;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A hook that reduces gradients as products of two narrow matrices (c10d: {@code powerSGD_hook}; T.
 * Vogels, S. P. Karimireddy, M. Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for
 * Distributed Optimization", NeurIPS 2019).
 *
 * <p>A gradient with two or more dimensions is treated as an n by m matrix M whose rows are its
 * first dimension. The matrix is approximated by P Q', where P is n by r and Q is m by r. Gradients
 * for which that saves too little, and those with fewer dimensions, are reduced as they are. Only
 * buckets of float32 are approximated; others are reduced as they are. Ranks send r (n + m)
 * elements instead of n m, in three all-reduces per bucket, and compute 3 r n m multiplications and
 * as many additions.
 *
 * <p>A reducer refuses parameters on a device whose gradients would be approximated. Nothing is
 * allocated after the first approximation of a bucket. With error feedback, a bucket needs memory
 * for its own size once more.
 */
public final class PowerSgd implements GradientHook {
  private final PowerSgdOptions options;
  private final Function<GradientBucket, LowRankBucket> approximate;
  private volatile boolean isUsed;
  private volatile @Nullable LowRankState state;

  /**
   * Creates a hook.
   *
   * @param options the options, the same on all ranks
   */
  public PowerSgd(PowerSgdOptions options) {
    this.options = options;
    this.approximate = bucket -> new LowRankBucket(bucket, options, state);
  }

  /**
   * {@inheritDoc}
   *
   * @throws IllegalArgumentException if a parameter is on a device whose gradient would be
   *     approximated
   */
  @Override
  public void requireSupported(List<Tensor> parameters) {
    for (int i = 0; i < parameters.size(); i++) {
      Tensor each = parameters.get(i);
      if (!each.device().isCpu() && each.dtype() == DType.FLOAT32 && options.compresses(each)) {
        throw new IllegalArgumentException(
            "PowerSgd approximates gradients on the host only, but parameter %d is %s"
                .formatted(i, each.describe()));
      }
    }
  }

  @Override
  public void reduce(GradientBucket bucket, ProcessGroup group) {
    isUsed = true;
    @Nullable LowRankState kept = state;
    long step = kept == null ? bucket.step() : kept.begin(bucket.step());
    if (bucket.tensor().dtype() != DType.FLOAT32
        || !bucket.tensor().device().isCpu()
        || step <= options.plainSteps()) {
      group.allReduce(bucket.tensor(), bucket.mean());
      return;
    }
    bucket.state(this, approximate).reduce(group, step);
  }

  /**
   * Returns what a later job needs to continue: for each approximated parameter {@code w}, {@code
   * error/w}, what this rank's last approximation left out, and {@code q/w}, the factor of the last
   * step; and the counter {@code step}. The errors belong to ranks, so a load on another number of
   * ranks refuses them. From this call on, the hook serves one reducer only.
   *
   * @param group the group of the reducer
   * @param names a name for each parameter, in the order of the reducer's parameters
   * @param parameters the parameters
   * @throws IllegalArgumentException if names are missing or occur twice
   * @throws IllegalStateException if the hook has reduced a bucket, or gave its state before
   */
  public ShardedState state(ProcessGroup group, List<String> names, List<Tensor> parameters) {
    if (isUsed || state != null) {
      throw new IllegalStateException(
          "the state of PowerSgd is asked for once, before the first step of its reducer");
    }
    LowRankState created = new LowRankState(group, names, parameters, options);
    state = created;
    return created;
  }
}
