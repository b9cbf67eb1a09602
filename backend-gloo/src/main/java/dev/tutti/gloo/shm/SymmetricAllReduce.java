package dev.tutti.gloo.shm;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.cpu.HostReducer;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Reduces, in place, a tensor that is at the same offset of symmetric memory on every rank: each
 * rank reduces one part of all buffers, in rank order, and writes the result into all of them. The
 * results are bitwise identical to those of {@link StagedAllReduce}.
 *
 * <table>
 * <caption>Cost for N ranks and S bytes</caption>
 * <tr><th>rounds</th><th>bytes written by each rank</th><th>bytes read by each rank</th></tr>
 * <tr><td>2</td><td>S</td><td>S, and S (N - 1) / N again in the cache</td></tr>
 * </table>
 *
 * <p>If the ranks turn out to hold tensors at different offsets, or outside symmetric memory, this
 * costs one round, and nothing has been changed.
 */
final class SymmetricAllReduce {
  /*
   * The first round uses slots: each rank shows where its tensor is, which also indicates that its
   * elements are ready. In the second round every rank writes to its own part of all tensors. No
   * other rank reads or writes that part until all ranks have signaled "reduced". If the operation
   * fails between the two rounds, peers may still write for a moment after it has ended here. They
   * may do that at any time anyway, since this is symmetric memory.
   */
  private static final long BLOCK = 64 * 1024;

  private final ShmChannel channel;
  private final SymmetricMemories memories;

  SymmetricAllReduce(ShmChannel channel, SymmetricMemories memories) {
    this.channel = channel;
    this.memories = memories;
  }

  /**
   * Reduces in place, if the tensors of all ranks allow it.
   *
   * @param tensor the elements, already scaled if the operator requires it
   * @return whether the operation was done; the same on all ranks
   */
  boolean run(Operation op, MemorySegment tensor, long bytes, DType dtype, ReduceOp.Kind kind)
      throws Exception {
    if (!memories.isUsed()) {
      return false;
    }
    HostSymmetricMemory memory = memories.enter(tensor, bytes);
    try {
      long offset = memory == null ? 0 : memory.offsetOf(tensor, bytes);
      if (!agree(op, memory == null ? 0 : memory.id, offset) || memory == null) {
        return false;
      }
      channel.beginStep(op);
      reduce(memory.buffers(), offset, bytes, dtype, kind);
      long step = channel.step();
      channel.reduced(step);
      for (int i = 1; i < channel.size; i++) {
        channel.awaitReduced(op, (channel.rank + i) % channel.size, step);
      }
      channel.finish(step);
      return true;
    } finally {
      if (memory != null) {
        memory.leave();
      }
    }
  }

  /** Returns whether the tensors of all ranks are at the same offset. */
  private boolean agree(Operation op, long id, long offset) throws Exception {
    MemorySegment[] slots = channel.beginSlots();
    MemorySegment own = slots[channel.rank];
    own.set(ValueLayout.JAVA_LONG, 0, id);
    own.set(ValueLayout.JAVA_LONG, 8, offset);
    channel.publishSlot();
    channel.awaitSlots(op);
    for (MemorySegment slot : slots) {
      if (slot.get(ValueLayout.JAVA_LONG, 0) != id
          || slot.get(ValueLayout.JAVA_LONG, 8) != offset) {
        return false;
      }
    }
    return id != 0;
  }

  private void reduce(
      MemorySegment[] buffers, long offset, long bytes, DType dtype, ReduceOp.Kind kind) {
    int size = channel.size;
    int rank = channel.rank;
    MemorySegment own = buffers[rank];
    long part = Parts.bytes(bytes, size);
    long end = offset + Math.min(bytes, (rank + 1) * part);
    for (long at = offset + Math.min(bytes, rank * part); at < end; at += BLOCK) {
      long length = Math.min(BLOCK, end - at);
      long count = length / dtype.byteSize();
      HostReducer.combineAll(kind, dtype, own, at, buffers, at, count);
      for (int i = 1; i < size; i++) {
        int peer = rank + i < size ? rank + i : rank + i - size;
        MemorySegment.copy(own, at, buffers[peer], at, length);
      }
    }
  }
}
