package dev.tutti.gradients;

import dev.tutti.CallOptions;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.util.List;
import java.util.function.Function;

/**
 * The gradients of some parameters, one after another in a single tensor (c10d: {@code
 * GradBucket}). The same object represents the same parameters in every step, except that buckets
 * may be formed anew after the first step.
 */
public interface GradientBucket {
  /**
   * Returns the position among the buckets of a step, starting at 0; buckets are reduced in this
   * order.
   */
  int index();

  /** Returns whether this is the last bucket of the step. */
  boolean isLast();

  /**
   * Returns all gradients as a one-dimensional tensor without gaps; a hook leaves the mean in it.
   */
  Tensor tensor();

  /** Returns the allocator of {@link #tensor()}, for memory that a hook needs on its device. */
  BucketAllocator allocator();

  /** Returns one view of {@link #tensor()} for each gradient, in the shape of its parameter. */
  List<Tensor> gradients();

  /** Returns the indices of the parameters, in the order of {@link #gradients()}. */
  List<Integer> parameters();

  /**
   * Returns the operator that computes the mean: {@link ReduceOp#AVG}, or the sum divided by the
   * number of ranks that still have inputs, if the options say so.
   */
  ReduceOp mean();

  /**
   * Returns the options of a hook's all-reduce of {@link #tensor()}: whether the device computes
   * beside it, as it does while the backward pass continues.
   */
  default CallOptions callOptions() {
    return CallOptions.DEFAULT;
  }

  /** Returns the number of the step, starting at 1. */
  long step();

  /**
   * Returns the state that a hook keeps for this bucket from one step to the next, such as a
   * buffer. The state lives as long as the bucket, so that a single hook can serve several
   * reducers. Called by a hook while it reduces the bucket.
   *
   * @param hook the owner of the state, compared by identity
   * @param create creates the state on the first call
   * @param <S> the type of the state; each hook has one state per bucket
   */
  <S> S state(GradientHook hook, Function<? super GradientBucket, ? extends S> create);
}
