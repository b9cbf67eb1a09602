package dev.tutti.gloo.shm;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.cpu.HostReducer;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Reduces one part for each rank, in the order of ranks; each stage holds a piece for every rank.
 *
 * <table>
 * <caption>Cost for N ranks, parts of S bytes and stages of C</caption>
 * <tr><th>rounds</th><th>bytes written by each rank</th><th>bytes read by each rank</th></tr>
 * <tr><td>N S / C</td><td>(N + 1) S</td><td>2 N S</td></tr>
 * </table>
 */
final class StagedReduceScatter {
  private final ShmChannel channel;

  StagedReduceScatter(ShmChannel channel) {
    this.channel = channel;
  }

  /** Finds what a rank shall get of this rank's input. */
  interface Inputs {
    /** Returns memory that the part of a rank is in. */
    MemorySegment memory(int peer);

    /** Returns where in it that part begins, in bytes. */
    long offset(int peer);
  }

  /**
   * Reduces.
   *
   * @param op carries the deadline
   * @param output this rank's part of the result
   * @param bytes of each part
   * @param inputs the parts
   * @param dtype element type
   * @param kind how to reduce
   * @param factor what to multiply this rank's elements by, for PREMUL_SUM
   * @throws Exception if a wait ended without success
   */
  void run(
      Operation op,
      MemorySegment output,
      long bytes,
      Inputs inputs,
      DType dtype,
      ReduceOp.Kind kind,
      double factor)
      throws Exception {
    int size = channel.size;
    int rank = channel.rank;
    long piece = Parts.piece(channel.layout.stageBytes(), size);
    for (long offset = 0; offset < bytes; offset += piece) {
      long length = Math.min(piece, bytes - offset);
      channel.beginStep(op);
      long step = channel.step();
      MemorySegment[] stages = channel.stages(step);
      for (int peer = 0; peer < size; peer++) {
        MemorySegment.copy(
            inputs.memory(peer), inputs.offset(peer) + offset, stages[rank], peer * piece, length);
        if (kind == ReduceOp.Kind.PREMUL_SUM) {
          HostReducer.scale(dtype, stages[rank], peer * piece, length / dtype.byteSize(), factor);
        }
      }
      channel.publish(step);
      channel.awaitAllPublished(op, step);
      HostReducer.combineAll(
          kind, dtype, output, offset, stages, rank * piece, length / dtype.byteSize());
      channel.finish(step);
    }
  }
}
