package dev.tutti.gloo.algorithm;

import dev.tutti.AllReduceAlgorithm;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.spi.Operation;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Runs collectives, one at a time. Arguments are as in {@link dev.tutti.spi.Backend}; what a method
 * throws is the end of the group.
 */
public interface Collectives extends AutoCloseable {
  /** Reduces in place, by whichever algorithm suits. */
  default void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    allReduce(op, tensor, reduceOp, AllReduceAlgorithm.AUTO);
  }

  /** Reduces in place, by an algorithm that {@link #reasonAgainst} has nothing against. */
  void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp, AllReduceAlgorithm algorithm)
      throws Exception;

  /** Returns why an all-reduce cannot go by an algorithm that is not AUTO, or null if it can. */
  @Nullable String reasonAgainst(AllReduceAlgorithm algorithm, Tensor tensor, ReduceOp reduceOp);

  /**
   * Sums sparse tensors.
   *
   * @param op carries the deadline
   * @param tensor this rank's, checked by {@link SparseAllReduce#check}
   * @return the sum, coalesced
   */
  Tensor allReduceSparse(Operation op, Tensor tensor) throws Exception;

  /** Reduces to one rank; the content elsewhere is undefined afterwards. */
  void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) throws Exception;

  /** Copies the root's tensor to all ranks. */
  void broadcast(Operation op, Tensor tensor, int root) throws Exception;

  /**
   * Gathers equal parts.
   *
   * @param op carries the deadline
   * @param output takes all parts, by rank
   * @param input this rank's part; may be the place of it in the output
   */
  void allGatherInto(Operation op, Tensor output, Tensor input) throws Exception;

  /** Gathers on one rank. */
  void gather(Operation op, List<Tensor> outputs, Tensor input, int root) throws Exception;

  /** Scatters from one rank. */
  void scatter(Operation op, Tensor output, List<Tensor> inputs, int root) throws Exception;

  /** Exchanges tensors between all ranks; sizes may differ. */
  void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) throws Exception;

  /** Reduces one tensor for each rank. */
  void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception;

  /** Reduces one tensor and hands each rank its equal part. */
  void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp)
      throws Exception;

  /** Waits for all ranks. */
  void barrier(Operation op) throws Exception;

  @Override
  void close();
}
