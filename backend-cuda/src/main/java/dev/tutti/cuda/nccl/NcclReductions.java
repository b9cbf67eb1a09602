package dev.tutti.cuda.nccl;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.spi.Operation;
import java.util.List;

/**
 * NCCL's reduction calls in NCCL's terms: with NCCL's numbers for types and operators. An operator
 * with a factor is created for one call and then freed.
 */
final class NcclReductions {
  private final int rank;

  /** A reduction call. */
  interface ReductionCall {
    /**
     * Calls NCCL.
     *
     * @param nccl the NCCL calls
     * @param count the number of NCCL elements in the tensor
     * @param type the element type
     * @param operator the operator that reduces the elements
     * @param handle the communicator's handle
     * @param stream the stream for the operation
     * @return NCCL's result
     */
    int run(NcclCalls nccl, long count, int type, int operator, long handle, long stream);
  }

  NcclReductions(int rank) {
    this.rank = rank;
  }

  /**
   * Returns the NCCL call for a reduction.
   *
   * @param like a tensor with the type and number of the elements
   * @throws UnsupportedOperationException if NCCL does not support this reduction
   */
  NcclLauncher.StreamCall of(Operation op, Tensor like, ReduceOp reduceOp, ReductionCall call) {
    requireReducible(op, like, reduceOp);
    return (nccl, handle, stream) -> run(nccl, handle, stream, like, reduceOp, call);
  }

  /**
   * Returns the NCCL calls that reduce several tensors to all ranks, as one group.
   *
   * @throws UnsupportedOperationException if NCCL does not support one of the reductions
   */
  NcclLauncher.StreamCall ofAll(Operation op, List<Tensor> tensors, ReduceOp reduceOp) {
    tensors.forEach(tensor -> requireReducible(op, tensor, reduceOp));
    return (nccl, handle, stream) -> {
      int first = NcclResult.SUCCESS;
      for (Tensor tensor : tensors) {
        first = NcclResult.firstFailure(first, reduceToAll(nccl, handle, stream, tensor, reduceOp));
      }
      return first;
    };
  }

  /**
   * Returns the NCCL calls that reduce each of several tensors to the rank of its number, as one
   * group, in the order of c10d.
   *
   * @param output the address for this rank's result
   * @throws UnsupportedOperationException if NCCL does not support the reduction
   */
  NcclLauncher.StreamCall ofEach(
      Operation op, long output, List<Tensor> inputs, ReduceOp reduceOp) {
    requireReducible(op, inputs.get(0), reduceOp);
    return (nccl, handle, stream) -> {
      int first = NcclResult.SUCCESS;
      for (int r = 0; r < inputs.size(); r++) {
        if (inputs.get(r).numel() > 0) {
          int root = r;
          long from = inputs.get(r).segment().address();
          long to = r == rank ? output : from;
          ReductionCall reduce =
              (same, count, type, operator, own, queue) ->
                  same.reduce(from, to, count, type, operator, root, own, queue);
          int result = run(nccl, handle, stream, inputs.get(r), reduceOp, reduce);
          first = NcclResult.firstFailure(first, result);
        }
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
   * Rejects reductions that NCCL does not support, alike on all ranks.
   *
   * @throws UnsupportedOperationException if NCCL does not support this reduction
   */
  void requireReducible(Operation op, Tensor like, ReduceOp reduceOp) {
    if (!NcclTypes.isReducible(like.dtype()) || !NcclTypes.has(reduceOp.kind())) {
      throw new UnsupportedOperationException(
          "%s on rank %s: NCCL, which connects the ranks, cannot reduce %s by %s"
              .formatted(op.type().label(), rank, like.dtype().label(), reduceOp));
    }
  }

  private static int run(
      NcclCalls nccl,
      long handle,
      long stream,
      Tensor like,
      ReduceOp reduceOp,
      ReductionCall call) {
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
