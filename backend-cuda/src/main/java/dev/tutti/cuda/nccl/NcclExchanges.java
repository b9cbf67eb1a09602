package dev.tutti.cuda.nccl;

import dev.tutti.Tensor;
import dev.tutti.cuda.access.Parts;
import dev.tutti.spi.Operation;
import java.util.List;

/**
 * The collectives that NCCL has no call for, composed of sends and receives that run as one group.
 * The tensors must be on this rank's device.
 */
final class NcclExchanges {
  private final NcclLauncher launcher;
  private final int rank;
  private final int size;

  /** A call to NCCL for a part of an operation. */
  private interface Part {
    int run(NcclCalls nccl, int rank);
  }

  NcclExchanges(NcclLauncher launcher, int rank, int size) {
    this.launcher = launcher;
    this.rank = rank;
    this.size = size;
  }

  /**
   * Gathers parts of unequal size by a broadcast of each, as one group, in the order of c10d.
   *
   * @param from the address of this rank's part
   */
  void allGather(Operation op, List<Tensor> outputs, long from) {
    launcher.put(
        op,
        (nccl, handle, stream) -> {
          int first = NcclResult.SUCCESS;
          for (int r = 0; r < size; r++) {
            long to = outputs.get(r).segment().address();
            long bytes = outputs.get(r).byteSize();
            if (bytes > 0) {
              int result = nccl.broadcast(r == rank ? from : to, to, bytes, r, handle, stream);
              first = NcclResult.firstFailure(first, result);
            }
          }
          return first;
        });
  }

  /**
   * Gathers one tensor of each rank on the root.
   *
   * @param outputs on the root, one tensor for each rank
   * @param from the address of this rank's data
   * @param bytes the number of bytes from each rank
   */
  void gather(Operation op, List<Tensor> outputs, long from, long bytes, int root) {
    launcher.put(
        op,
        stream -> {
          if (rank == root && bytes > 0) {
            Parts.of(stream).copy(address(outputs, rank), from, bytes);
          }
        },
        (nccl, handle, own) ->
            rank != root
                ? nccl.send(from, bytes, root, handle, own)
                : forEachPeer(
                    nccl, (same, r) -> same.receive(address(outputs, r), bytes, r, handle, own)));
  }

  /**
   * Scatters the root's tensors.
   *
   * @param to the address at which this rank receives its part
   * @param inputs on the root, one tensor for each rank
   * @param bytes the number of bytes for each rank
   */
  void scatter(Operation op, long to, List<Tensor> inputs, long bytes, int root) {
    launcher.put(
        op,
        stream -> {
          if (rank == root && bytes > 0) {
            Parts.of(stream).copy(to, address(inputs, rank), bytes);
          }
        },
        (nccl, handle, own) ->
            rank != root
                ? nccl.receive(to, bytes, root, handle, own)
                : forEachPeer(
                    nccl, (same, r) -> same.send(address(inputs, r), bytes, r, handle, own)));
  }

  /** Sends a tensor to each rank, and receives one from each. */
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
   * Sends a part of a tensor to each rank, and receives one from each.
   *
   * @param to the start addresses of the parts received from the ranks, then the end of the last
   *     one
   * @param from the start addresses of the parts to send, then the end of the last one
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

  /** Calls NCCL for each rank; returns the first result that is not success. */
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
    // Empty parts too: NCCL counts them, and PyTorch omits none.
    int first = nccl.send(from, sent, peer, handle, stream);
    int second = nccl.receive(to, received, peer, handle, stream);
    return NcclResult.firstFailure(first, second);
  }
}
