package dev.tutti.gradients;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.util.List;
import java.util.function.Function;

/**
 * The gradients of some parameters, one after the other in one tensor (c10d: {@code GradBucket}).
 * The same object stands for the same parameters in every step, until buckets are formed anew after
 * the first.
 */
public interface GradientBucket {
  /** Returns the place among the buckets of a step, from 0; they are reduced in this order. */
  int index();

  /** Tells whether this is the last bucket of the step. */
  boolean isLast();

  /** Returns all gradients as one dimension, without gaps; a hook leaves the mean in it. */
  Tensor tensor();

  /** Returns a view of {@link #tensor()} for each gradient, in the shape of its parameter. */
  List<Tensor> gradients();

  /** Returns the indices of the parameters, in the order of {@link #gradients()}. */
  List<Integer> parameters();

  /**
   * Returns the operator that makes the mean: {@link ReduceOp#AVG}, or the sum divided by the
   * number of ranks that still have inputs, where the options say so.
   */
  ReduceOp mean();

  /** Returns the number of the step, from 1. */
  long step();

  /**
   * Returns what a hook keeps for this bucket from one step to the next, such as a buffer. It lives
   * as long as the bucket, and one hook can so serve several reducers. Called by a hook while it
   * reduces the bucket.
   *
   * @param hook the owner, compared by identity
   * @param create makes it at the first call
   * @param <S> what it is; each hook has one state in a bucket
   */
  <S> S state(GradientHook hook, Function<? super GradientBucket, ? extends S> create);
}
