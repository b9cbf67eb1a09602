package dev.tutti.gloo.shm;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.cpu.HostReducer;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Reduces one part for each rank, in rank order; the slot, or each stage if the parts are larger,
 * holds a piece for every rank.
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

  /**
   * Reduces the parts.
   *
   * @param op carries the deadline
   * @param output receives this rank's part of the result
   * @param bytes the size of each part in bytes
   * @param inputs the parts of this rank's input that are meant for each rank
   * @param dtype the element type
   * @param kind the operator
   * @param factor the factor by which to multiply this rank's elements, for PREMUL_SUM
   * @throws Exception if a wait fails
   */
  void run(
      Operation op,
      MemorySegment output,
      long bytes,
      TensorParts inputs,
      DType dtype,
      ReduceOp.Kind kind,
      double factor)
      throws Exception {
    int size = channel.size;
    int rank = channel.rank;
    if (bytes * size <= ShmLayout.SLOT_BYTES) {
      MemorySegment[] slots = channel.beginSlots();
      fill(slots[rank], bytes, inputs, 0, bytes, dtype, factor);
      channel.publishSlot();
      channel.awaitSlots(op);
      HostReducer.combineAll(kind, dtype, output, 0, slots, rank * bytes, bytes / dtype.byteSize());
      return;
    }
    long piece = Parts.piece(channel.layout.stageBytes(), size);
    for (long offset = 0; offset < bytes; offset += piece) {
      long length = Math.min(piece, bytes - offset);
      channel.beginStep(op);
      long step = channel.step();
      MemorySegment[] stages = channel.stages(step);
      fill(stages[rank], piece, inputs, offset, length, dtype, factor);
      channel.publish(step);
      channel.awaitAllPublished(op, step);
      HostReducer.combineAll(
          kind, dtype, output, offset, stages, rank * piece, length / dtype.byteSize());
      channel.finish(step);
    }
  }

  /** Puts a piece for each rank into this rank's memory, {@code piece} bytes apart. */
  private void fill(
      MemorySegment own,
      long piece,
      TensorParts inputs,
      long offset,
      long length,
      DType dtype,
      double factor) {
    for (int peer = 0; peer < channel.size; peer++) {
      MemorySegment.copy(
          inputs.memory(peer), inputs.offset(peer) + offset, own, peer * piece, length);
      if (factor != 1) {
        HostReducer.scale(dtype, own, peer * piece, length / dtype.byteSize(), factor);
      }
    }
  }
}
