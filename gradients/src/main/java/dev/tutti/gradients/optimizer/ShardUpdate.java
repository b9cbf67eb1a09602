package dev.tutti.gradients.optimizer;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.util.List;

/**
 * Changes parameters by their gradients, element by element. An element's update must not depend on
 * other elements, as a rank has an arbitrary part of them. Called by the thread that calls {@link
 * ShardedOptimizer#step}.
 */
public interface ShardUpdate {
  /**
   * Tells whether parameters of a type can be updated.
   *
   * @param dtype the type
   */
  boolean supports(DType dtype);

  /**
   * Allocates the state of a shard, such as momentum, as it is before the first step.
   *
   * @param parameters of the shard: contiguous, of one dimension
   * @return tensors that {@link #update} gets with this shard
   */
  List<Tensor> allocate(Tensor parameters);

  /**
   * Updates a shard.
   *
   * @param step number of the step, from 1
   * @param parameters contiguous, of one dimension; changed in place
   * @param gradients of the same type and size
   * @param state what {@link #allocate} returned for this shard; changed in place
   */
  void update(long step, Tensor parameters, Tensor gradients, List<Tensor> state);
}
