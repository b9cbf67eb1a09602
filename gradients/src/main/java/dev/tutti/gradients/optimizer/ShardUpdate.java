package dev.tutti.gradients.optimizer;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.util.List;
import java.util.Optional;

/**
 * An update of parameters by their gradients, element by element. The update of an element must not
 * depend on other elements, since a rank has an arbitrary part of them. Its methods are called by
 * the thread that calls {@link ShardedOptimizer#step}.
 */
public interface ShardUpdate {
  /**
   * Returns whether parameters of a type on the host can be updated.
   *
   * @param dtype the type
   */
  boolean supports(DType dtype);

  /**
   * Returns the numbers of this update for kernels that do the same on devices; empty, which is the
   * default, if it works on the host only. They may change from step to step only in their rate.
   */
  default Optional<FusedUpdate> fused() {
    return Optional.empty();
  }

  /**
   * Allocates the state of a shard, such as momentum, with its values before the first step.
   *
   * @param parameters the parameters of the shard: contiguous, one-dimensional
   * @return the tensors that {@link #update} gets with this shard
   */
  List<Tensor> allocate(Tensor parameters);

  /**
   * Returns a name for each tensor that {@link #allocate} returns, as PyTorch's optimizers name
   * theirs, for checkpoints. Unless it is overridden, they have none, and are saved by number.
   */
  default List<String> stateNames() {
    return List.of();
  }

  /**
   * Updates a shard.
   *
   * @param step the number of the step, starting at 1
   * @param parameters the parameters: contiguous, one-dimensional, changed in place
   * @param gradients the gradients, of the same type and size
   * @param state the tensors that {@link #allocate} returned for this shard, changed in place
   */
  void update(long step, Tensor parameters, Tensor gradients, List<Tensor> state);
}
