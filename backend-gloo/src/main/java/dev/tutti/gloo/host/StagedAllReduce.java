package dev.tutti.gloo.host;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.spi.HostReducer;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Reduces a tensor in chunks: every rank stages a chunk, reduces its own part of it from all
 * stages, in the order of ranks, and takes the other parts from those who reduced them. A chunk is
 * staged while the one before it is reduced.
 *
 * <table>
 * <caption>Cost for N ranks and S bytes in chunks of C</caption>
 * <tr><th>rounds</th><th>bytes written by each rank</th><th>bytes read by each rank</th></tr>
 * <tr><td>S / C + 1</td><td>(2 + 1/N) S</td><td>3 S</td></tr>
 * </table>
 */
final class StagedAllReduce {
  private final HostChannel channel;

  StagedAllReduce(HostChannel channel) {
    this.channel = channel;
  }

  /**
   * Reduces in place.
   *
   * @param op carries the deadline
   * @param tensor the elements
   * @param bytes their bytes
   * @param dtype their type
   * @param kind how to reduce
   * @param root the only rank that gets the result, or -1 for all
   * @throws Exception if a wait ended without success
   */
  void run(
      Operation op, MemorySegment tensor, long bytes, DType dtype, ReduceOp.Kind kind, int root)
      throws Exception {
    int size = channel.size;
    int rank = channel.rank;
    long chunk = chunkBytes(bytes);
    long first = channel.step() + 1;
    long steps = Math.ceilDiv(bytes, chunk);
    stage(op, tensor, 0, bytes, chunk);
    for (long i = 0; i < steps; i++) {
      if (i + 1 < steps) {
        stage(op, tensor, i + 1, bytes, chunk);
      }
      long step = first + i;
      long length = Math.min(chunk, bytes - i * chunk);
      long part = Parts.bytes(length, size);
      MemorySegment[] stages = channel.stages(step);
      channel.awaitAllPublished(op, step);
      long begin = Math.min(length, rank * part);
      long end = Math.min(length, begin + part);
      HostReducer.combineAll(
          kind, dtype, stages[rank], begin, stages, begin, (end - begin) / dtype.byteSize());
      channel.reduced(step);
      if (root < 0 || root == rank) {
        for (int n = 0; n < size; n++) {
          int peer = (rank + n) % size;
          long from = Math.min(length, peer * part);
          long to = Math.min(length, from + part);
          if (to > from) {
            channel.awaitReduced(op, peer, step);
            MemorySegment.copy(stages[peer], from, tensor, i * chunk + from, to - from);
          }
        }
      }
      channel.finish(step);
    }
  }

  private long chunkBytes(long bytes) {
    return Math.min(channel.layout.stageBytes(), Math.max(bytes, 1));
  }

  private void stage(Operation op, MemorySegment tensor, long index, long bytes, long chunk)
      throws Exception {
    channel.beginStep(op);
    long step = channel.step();
    long offset = index * chunk;
    MemorySegment.copy(
        tensor, offset, channel.stages(step)[channel.rank], 0, Math.min(chunk, bytes - offset));
    channel.publish(step);
  }
}
