package dev.tutti.gloo.shm;

import dev.tutti.cpu.memory.SharedHeap;
import dev.tutti.gloo.algorithm.TensorParts;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.ref.Reference;

/**
 * Gathers parts on all ranks: small parts in slots; larger parts in chunks, of which each rank
 * stages its own, one ahead, and copies those of the others; there are as many as the largest part
 * needs. Large parts are copied directly from their locations, if all ranks can see them or the
 * system lets ranks read each other.
 *
 * <table>
 * <caption>Cost for N ranks and S bytes of each in chunks of C</caption>
 * <tr><th></th><th>rounds</th><th>bytes written by each rank</th><th>bytes read by each rank</th></tr>
 * <tr><td>slots</td><td>1</td><td>N S</td><td>(N - 1) S</td></tr>
 * <tr><td>staged</td><td>S / C</td><td>(N + 1) S</td><td>(N + 1) S</td></tr>
 * <tr><td>read</td><td>2</td><td>N S</td><td>N S</td></tr>
 * </table>
 */
final class StagedAllGather {
  /**
   * The minimum size in bytes of a part that is read from its location: a shorter part, when
   * staged, stays in the caches.
   */
  static final long LEAST_READ = 1 << 20;

  private final ShmChannel channel;
  private final HostReads reads;

  StagedAllGather(ShmChannel channel, HostReads reads) {
    this.channel = channel;
    this.reads = reads;
  }

  /**
   * Gathers the parts.
   *
   * @param outputs receives the parts, whose sizes are the same on all ranks
   * @param input begins with this rank's part; may be the part's place among the outputs
   */
  void run(Operation op, TensorParts outputs, MemorySegment input) throws Exception {
    int rank = channel.rank;
    long bytes = outputs.bytes(rank);
    MemorySegment output = outputs.memory(rank);
    long own = outputs.offset(rank);
    boolean inPlace = output.asSlice(own, bytes).equals(input.asSlice(0, bytes));
    long longest = outputs.longest();
    if (longest <= ShmLayout.SLOT_BYTES) {
      gatherSlots(op, outputs, input, inPlace);
      return;
    }
    boolean mapped = longest >= HostReads.LEAST_MAPPED && reads.areMapped(op);
    boolean open = longest >= LEAST_READ && reads.areOpen(op);
    if (mapped || open) {
      reads.lend();
      try {
        MemorySegment[] slots = show(outputs, input, mapped, open);
        channel.awaitSlots(op);
        if (ShmChannel.areAllSet(slots, 1) || ShmChannel.areAllSet(slots, 2)) {
          read(op, slots, outputs, input, inPlace);
          return;
        }
      } finally {
        reads.endLoan();
        // The others may read it until the operation ends.
        Reference.reachabilityFence(input);
      }
    }
    long chunk = channel.layout.stageBytes();
    long first = channel.step() + 1;
    stage(op, input, 0, Math.min(chunk, bytes));
    for (long offset = 0; offset < longest; offset += chunk) {
      long next = offset + chunk;
      if (next < longest) {
        stage(op, input, next, Math.min(chunk, bytes - next));
      }
      if (!inPlace) {
        copy(input, offset, output, own + offset, Math.min(chunk, bytes - offset));
      }
      long step = first + offset / chunk;
      for (int i = 1; i < channel.size; i++) {
        int peer = (rank + i) % channel.size;
        channel.awaitPublished(op, peer, step);
        copy(
            channel.stages(step)[peer],
            0,
            outputs.memory(peer),
            outputs.offset(peer) + offset,
            Math.min(chunk, outputs.bytes(peer) - offset));
      }
      channel.finish(step);
    }
  }

  private static void copy(
      MemorySegment from, long offset, MemorySegment to, long place, long length) {
    if (length > 0) {
      MemorySegment.copy(from, offset, to, place, length);
    }
  }

  private void gatherSlots(Operation op, TensorParts outputs, MemorySegment input, boolean inPlace)
      throws Exception {
    int rank = channel.rank;
    long bytes = outputs.bytes(rank);
    MemorySegment[] slots = channel.beginSlots();
    MemorySegment.copy(input, 0, slots[rank], 0, bytes);
    channel.publishSlot();
    if (!inPlace) {
      MemorySegment.copy(input, 0, outputs.memory(rank), outputs.offset(rank), bytes);
    }
    channel.awaitSlots(op);
    for (int i = 1; i < channel.size; i++) {
      int peer = (rank + i) % channel.size;
      MemorySegment.copy(
          slots[peer], 0, outputs.memory(peer), outputs.offset(peer), outputs.bytes(peer));
    }
  }

  /** Shows where this rank's part is, and whether all ranks can see or read it there. */
  private MemorySegment[] show(
      TensorParts outputs, MemorySegment input, boolean mapped, boolean open) {
    HostReads.requireAlive(input);
    MemorySegment[] slots = channel.beginSlots();
    boolean isEmpty = outputs.bytes(channel.rank) == 0;
    boolean seen = mapped && (isEmpty || SharedHeap.has(input));
    boolean readable = open && input.isNative() && outputs.memory(channel.rank).isNative();
    MemorySegment slot = slots[channel.rank];
    slot.set(ValueLayout.JAVA_LONG, 0, input.address());
    slot.set(ValueLayout.JAVA_LONG, 8, seen ? 1 : 0);
    slot.set(ValueLayout.JAVA_LONG, 16, readable ? 1 : 0);
    channel.publishSlot();
    return slots;
  }

  /**
   * Copies the parts from where the other ranks have them, and this rank's own part unless it is in
   * place.
   */
  private void read(
      Operation op,
      MemorySegment[] slots,
      TensorParts outputs,
      MemorySegment input,
      boolean inPlace)
      throws Exception {
    try {
      for (int i = 1; i < channel.size; i++) {
        int peer = (channel.rank + i) % channel.size;
        long address = slots[peer].get(ValueLayout.JAVA_LONG, 0);
        if (outputs.bytes(peer) > 0) {
          reads.copy(
              op, peer, address, outputs.memory(peer), outputs.offset(peer), outputs.bytes(peer));
        }
      }
      if (!inPlace) {
        MemorySegment.copy(
            input,
            0,
            outputs.memory(channel.rank),
            outputs.offset(channel.rank),
            outputs.bytes(channel.rank));
      }
      channel.agree(op);
    } catch (Throwable t) {
      reads.revoke();
      throw t;
    }
  }

  private void stage(Operation op, MemorySegment input, long offset, long length) throws Exception {
    channel.beginStep(op);
    long step = channel.step();
    copy(input, offset, channel.stages(step)[channel.rank], 0, length);
    channel.publish(step);
  }
}
