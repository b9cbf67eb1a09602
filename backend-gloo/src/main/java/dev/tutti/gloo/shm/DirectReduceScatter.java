package dev.tutti.gloo.shm;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.cpu.HostReducer;
import dev.tutti.cpu.memory.SharedHeap;
import dev.tutti.gloo.algorithm.TensorParts;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Reduces one part for each rank, in rank order, directly from the inputs of all ranks, if all
 * ranks can see them. The results are bitwise identical to those of {@link StagedReduceScatter}.
 *
 * <table>
 * <caption>Cost for N ranks and parts of S bytes</caption>
 * <tr><th>rounds</th><th>bytes written by each rank</th><th>bytes read by each rank</th></tr>
 * <tr><td>2</td><td>S</td><td>N S</td></tr>
 * </table>
 *
 * <p>If an input turns out not to be visible, this costs one round, and nothing has been changed.
 */
final class DirectReduceScatter {
  private static final long SLICE = 4 << 20;

  private final ShmChannel channel;
  private final HostReads reads;
  private final MemorySegment[] parts;

  DirectReduceScatter(ShmChannel channel, HostReads reads) {
    this.channel = channel;
    this.reads = reads;
    parts = new MemorySegment[channel.size];
  }

  /**
   * Reduces the parts, if all ranks can see all inputs.
   *
   * @param output receives this rank's part of the result
   * @param inputs the parts
   * @param kind the operator, without a factor
   * @return whether the operation was done; the same on all ranks
   */
  boolean run(
      Operation op, MemorySegment output, TensorParts inputs, DType dtype, ReduceOp.Kind kind)
      throws Exception {
    long bytes = inputs.bytes(channel.rank);
    if (inputs.longest() < HostReads.LEAST_MAPPED || !reads.areMapped(op)) {
      return false;
    }
    MemorySegment[] slots = channel.beginSlots();
    reads.lend();
    try {
      show(slots[channel.rank], inputs);
      channel.publishSlot();
      channel.awaitSlots(op);
      if (!ShmChannel.areAllSet(slots, 0)) {
        return false;
      }
      for (int peer = 0; bytes > 0 && peer < channel.size; peer++) {
        parts[peer] =
            peer == channel.rank
                ? inputs.memory(peer).asSlice(inputs.offset(peer), bytes)
                : reads.view(peer, address(slots[peer]), bytes);
      }
      for (long at = 0; at < bytes; at += SLICE) {
        channel.throwIfOver(op);
        long count = Math.min(SLICE, bytes - at) / dtype.byteSize();
        HostReducer.combineAll(kind, dtype, output, at, parts, at, count);
      }
      reads.checkAll();
      channel.agree(op);
      return true;
    } catch (Throwable t) {
      reads.revoke();
      throw t;
    } finally {
      reads.endLoan();
      parts[channel.rank] = MemorySegment.NULL;
    }
  }

  /** Shows whether all parts can be seen, and where each one is. */
  private void show(MemorySegment slot, TensorParts inputs) {
    boolean seen = true;
    for (int peer = 0; peer < channel.size; peer++) {
      MemorySegment memory = inputs.memory(peer);
      HostReads.requireAlive(memory);
      long end = inputs.offset(peer) + inputs.bytes(peer);
      seen &= inputs.bytes(peer) == 0 || (memory.byteSize() >= end && SharedHeap.has(memory));
      slot.setAtIndex(ValueLayout.JAVA_LONG, 1L + peer, memory.address() + inputs.offset(peer));
    }
    slot.set(ValueLayout.JAVA_LONG, 0, seen ? 1 : 0);
  }

  private long address(MemorySegment slot) {
    return slot.getAtIndex(ValueLayout.JAVA_LONG, 1L + channel.rank);
  }
}
