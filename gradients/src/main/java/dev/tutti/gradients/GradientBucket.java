package dev.tutti.gradients;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.util.List;

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
}
