package dev.tutti.cuda.nccl;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.Tensor;
import dev.tutti.spi.Operation;
import java.util.List;

/**
 * Makes the collectives that NCCL has no call for out of its sends and receives, which run as one.
 * The tensors are of this rank's device.
 */
final class NcclExchanges {
  private final NcclLauncher launcher;
  private final int rank;
  private final int size;

  /** Calls NCCL for a part of an operation. */
  private interface Part {
    int run(NcclCalls nccl, int rank);
  }

  NcclExchanges(NcclLauncher launcher, int rank, int size) {
    this.launcher = launcher;
    this.rank = rank;
    this.size = size;
  }

  /**
   * Gathers what ranks have on the root.
   *
   * @param outputs on the root, one of each rank
   * @param from what this rank has
   * @param bytes of each rank
   */
  void gather(Operation op, List<Tensor> outputs, long from, long bytes, int root) {
    launcher.put(
        op,
        stream -> {
          if (rank == root && bytes > 0) {
            access().copy(stream, address(outputs, rank), from, bytes);
          }
        },
        (nccl, handle, own) ->
            rank != root
                ? nccl.send(from, bytes, root, handle, own)
                : forEachPeer(
                    nccl, (same, r) -> same.receive(address(outputs, r), bytes, r, handle, own)));
  }

  /**
   * Scatters what the root has.
   *
   * @param to where this rank gets its part
   * @param inputs on the root, one of each rank
   * @param bytes of each rank
   */
  void scatter(Operation op, long to, List<Tensor> inputs, long bytes, int root) {
    launcher.put(
        op,
        stream -> {
          if (rank == root && bytes > 0) {
            access().copy(stream, to, address(inputs, rank), bytes);
          }
        },
        (nccl, handle, own) ->
            rank != root
                ? nccl.receive(to, bytes, root, handle, own)
                : forEachPeer(
                    nccl, (same, r) -> same.send(address(inputs, r), bytes, r, handle, own)));
  }

  /** Sends each rank a tensor, and receives one of it. */
  void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) {
    launcher.put(
        op,
        (nccl, handle, stream) ->
            forEachRank(
                nccl,
                (same, r) ->
                    swap(
                        same,
                        r,
                        address(inputs, r),
                        inputs.get(r).byteSize(),
                        address(outputs, r),
                        outputs.get(r).byteSize(),
                        handle,
                        stream)));
  }

  /**
   * Sends each rank a part of a tensor, and receives one of it.
   *
   * @param to where the parts of the ranks begin that are received, and where the last one ends
   * @param from where those begin that are sent, and where the last one ends
   */
  void allToAll(Operation op, long[] to, long[] from) {
    launcher.put(
        op,
        (nccl, handle, stream) ->
            forEachRank(
                nccl,
                (same, r) ->
                    swap(
                        same,
                        r,
                        from[r],
                        from[r + 1] - from[r],
                        to[r],
                        to[r + 1] - to[r],
                        handle,
                        stream)));
  }

  private static long address(List<Tensor> tensors, int rank) {
    return tensors.get(rank).segment().address();
  }

  /** Calls NCCL for each rank; the first result that is none of success. */
  private int forEachRank(NcclCalls nccl, Part part) {
    int first = NcclResult.SUCCESS;
    for (int r = 0; r < size; r++) {
      first = NcclResult.firstFailure(first, part.run(nccl, r));
    }
    return first;
  }

  private int forEachPeer(NcclCalls nccl, Part part) {
    return forEachRank(nccl, (same, r) -> r == rank ? NcclResult.SUCCESS : part.run(same, r));
  }

  /** Sends to a rank and receives from it. */
  private static int swap(
      NcclCalls nccl,
      int peer,
      long from,
      long sent,
      long to,
      long received,
      long handle,
      long stream) {
    // Empty parts too: NCCL counts them, and PyTorch leaves none out.
    int first = nccl.send(from, sent, peer, handle, stream);
    int second = nccl.receive(to, received, peer, handle, stream);
    return NcclResult.firstFailure(first, second);
  }
}
