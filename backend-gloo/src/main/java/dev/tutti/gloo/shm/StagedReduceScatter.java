package dev.tutti.gloo.shm;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.cpu.HostReducer;
import dev.tutti.gloo.algorithm.TensorParts;
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
public final class StagedReduceScatter {
  private final ShmChannel channel;

  /** Creates an instance for any number of operations, one at a time. */
  public StagedReduceScatter(ShmChannel channel) {
    this.channel = channel;
  }

  /**
   * Reduces the parts.
   *
   * @param output receives this rank's part of the result; may be that part of its input
   * @param inputs the parts of this rank's input that are meant for each rank
   * @param factor the factor by which to multiply this rank's elements, for PREMUL_SUM
   */
  public void run(
      Operation op,
      MemorySegment output,
      TensorParts inputs,
      DType dtype,
      ReduceOp.Kind kind,
      double factor)
      throws Exception {
    int size = channel.size;
    int rank = channel.rank;
    long bytes = inputs.bytes(rank);
    if (inputs.total() <= ShmLayout.SLOT_BYTES) {
      MemorySegment[] slots = channel.beginSlots();
      long start = 0;
      for (int peer = 0; peer < size; peer++) {
        fill(slots[rank], start, inputs, peer, 0, inputs.bytes(peer), dtype, factor);
        start += inputs.bytes(peer);
      }
      channel.publishSlot();
      channel.awaitSlots(op);
      HostReducer.combineAll(
          kind, dtype, output, 0, slots, inputs.bytesBefore(rank), bytes / dtype.byteSize());
      return;
    }
    long piece = Parts.piece(channel.layout.stageBytes(), size);
    long longest = inputs.longest();
    for (long offset = 0; offset < longest; offset += piece) {
      long length = Math.clamp(bytes - offset, 0, piece);
      channel.beginStep(op);
      long step = channel.step();
      MemorySegment[] stages = channel.stages(step);
      for (int peer = 0; peer < size; peer++) {
        long ofPeer = Math.clamp(inputs.bytes(peer) - offset, 0, piece);
        fill(stages[rank], peer * piece, inputs, peer, offset, ofPeer, dtype, factor);
      }
      channel.publish(step);
      channel.awaitAllPublished(op, step);
      if (length > 0) {
        HostReducer.combineAll(
            kind, dtype, output, offset, stages, rank * piece, length / dtype.byteSize());
      }
      channel.finish(step);
    }
  }

  /** Puts a piece for a rank into this rank's memory. */
  private static void fill(
      MemorySegment own,
      long place,
      TensorParts inputs,
      int peer,
      long offset,
      long length,
      DType dtype,
      double factor) {
    if (length > 0) {
      MemorySegment.copy(inputs.memory(peer), inputs.offset(peer) + offset, own, place, length);
      if (factor != 1) {
        HostReducer.scale(dtype, own, place, length / dtype.byteSize(), factor);
      }
    }
  }
}
