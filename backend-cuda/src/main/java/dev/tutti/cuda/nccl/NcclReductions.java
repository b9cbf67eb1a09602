package dev.tutti.cuda.nccl;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.spi.Operation;
import java.util.List;

/**
 * Makes the calls of NCCL that reduce, in NCCL's terms: with the number of a type, and that of an
 * operator, which is made and freed for a call where it has a factor.
 */
final class NcclReductions {
  private final int rank;

  /** A call that reduces. */
  interface Call {
    /**
     * Calls NCCL.
     *
     * @param nccl to be called
     * @param count of NCCL's elements in the tensor
     * @param type of an element
     * @param operator by which they are reduced
     * @param handle of the communicator
     * @param stream where the operation goes
     * @return NCCL's result
     */
    int run(NcclCalls nccl, long count, int type, int operator, long handle, long stream);
  }

  NcclReductions(int rank) {
    this.rank = rank;
  }

  /**
   * Says how to call NCCL.
   *
   * @param like has the type and number of the elements
   * @throws UnsupportedOperationException if NCCL does not reduce them so
   */
  NcclLauncher.Call of(Operation op, Tensor like, ReduceOp reduceOp, Call call) {
    requireReducible(op, like, reduceOp);
    return (nccl, handle, stream) -> run(nccl, handle, stream, like, reduceOp, call);
  }

  /**
   * Says how to call NCCL for the reductions of tensors to all ranks, as one.
   *
   * @throws UnsupportedOperationException if NCCL does not reduce one of them so
   */
  NcclLauncher.Call ofAll(Operation op, List<Tensor> tensors, ReduceOp reduceOp) {
    tensors.forEach(tensor -> requireReducible(op, tensor, reduceOp));
    return (nccl, handle, stream) -> {
      int first = NcclResult.SUCCESS;
      for (Tensor tensor : tensors) {
        first = NcclResult.firstFailure(first, reduceToAll(nccl, handle, stream, tensor, reduceOp));
      }
      return first;
    };
  }

  private static int reduceToAll(
      NcclCalls nccl, long handle, long stream, Tensor tensor, ReduceOp reduceOp) {
    long address = tensor.segment().address();
    return tensor.numel() == 0
        ? NcclResult.SUCCESS
        : run(
            nccl,
            handle,
            stream,
            tensor,
            reduceOp,
            (same, count, type, operator, own, to) ->
                same.allReduce(address, address, count, type, operator, own, to));
  }

  /**
   * Refuses what NCCL cannot reduce, on all ranks alike.
   *
   * @throws UnsupportedOperationException if NCCL does not reduce it so
   */
  void requireReducible(Operation op, Tensor like, ReduceOp reduceOp) {
    if (!NcclTypes.isReducible(like.dtype()) || !NcclTypes.has(reduceOp.kind())) {
      throw new UnsupportedOperationException(
          op.type().label()
              + " on rank "
              + rank
              + ": NCCL, which joins the ranks, does not reduce "
              + like.dtype().label()
              + " by "
              + reduceOp);
    }
  }

  private static int run(
      NcclCalls nccl, long handle, long stream, Tensor like, ReduceOp reduceOp, Call call) {
    int type = NcclTypes.type(like.dtype());
    long count = NcclTypes.count(like.dtype(), like.numel());
    if (reduceOp.kind() != ReduceOp.Kind.PREMUL_SUM) {
      int operator = NcclTypes.op(reduceOp.kind(), like.dtype());
      return call.run(nccl, count, type, operator, handle, stream);
    }
    long factor = NcclTypes.element(reduceOp.factor(), like.dtype());
    int operator = nccl.scaledSum(factor, type, handle);
    int result = call.run(nccl, count, type, operator, handle, stream);
    int freed = nccl.freeOperator(operator, handle);
    return NcclResult.firstFailure(result, freed);
  }
}
