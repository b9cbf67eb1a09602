package dev.tutti.gloo.shm;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.cpu.HostReducer;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Reduces a tensor in place, one part of it on each rank, in rank order; each stage holds a piece
 * for every rank. A rank's other parts keep their content.
 *
 * <table>
 * <caption>Cost for N ranks, S bytes and stages of C</caption>
 * <tr><th>rounds</th><th>bytes written by each rank</th><th>bytes read by each rank</th></tr>
 * <tr><td>S / C</td><td>(1 + 1/N) S</td><td>2 S</td></tr>
 * </table>
 */
public final class StagedPartReduce {
  private final ShmChannel channel;

  public StagedPartReduce(ShmChannel channel) {
    this.channel = channel;
  }

  /**
   * Reduces the parts.
   *
   * @param parts the size in bytes of each rank's part; the parts follow one another
   */
  public void run(Operation op, MemorySegment tensor, long[] parts, DType dtype, ReduceOp.Kind kind)
      throws Exception {
    int size = channel.size;
    int rank = channel.rank;
    long piece = Parts.piece(channel.layout.stageBytes(), size);
    long longest = 0;
    for (long bytes : parts) {
      longest = Math.max(longest, bytes);
    }
    for (long offset = 0; offset < longest; offset += piece) {
      channel.beginStep(op);
      long step = channel.step();
      MemorySegment[] stages = channel.stages(step);
      long start = 0;
      long own = 0;
      for (int peer = 0; peer < size; peer++) {
        long length = Math.min(piece, parts[peer] - offset);
        if (length > 0) {
          MemorySegment.copy(tensor, start + offset, stages[rank], peer * piece, length);
        }
        own = peer == rank ? start : own;
        start += parts[peer];
      }
      channel.publish(step);
      channel.awaitAllPublished(op, step);
      long length = Math.min(piece, parts[rank] - offset);
      if (length > 0) {
        HostReducer.combineAll(
            kind, dtype, tensor, own + offset, stages, rank * piece, length / dtype.byteSize());
      }
      channel.finish(step);
    }
  }
}
