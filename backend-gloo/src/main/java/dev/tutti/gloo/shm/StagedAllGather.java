package dev.tutti.gloo.shm;

import dev.tutti.cpu.memory.SharedHeap;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.ref.Reference;

/**
 * Gathers equal parts on all ranks: small parts in slots; larger parts in chunks, of which each
 * rank stages its own, one ahead, and copies those of the others. Large parts are copied directly
 * from their locations, if all ranks can see them or the system lets ranks read each other.
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
  private static final long LEAST_READ = 1 << 20;

  private final ShmChannel channel;
  private final HostReads reads;

  StagedAllGather(ShmChannel channel, HostReads reads) {
    this.channel = channel;
    this.reads = reads;
  }

  /**
   * Gathers the parts.
   *
   * @param op carries the deadline
   * @param output receives the parts in rank order
   * @param input begins with this rank's part; may be the part's place in the output
   * @param bytes the size of each part in bytes
   * @throws Exception if a wait fails
   */
  void run(Operation op, MemorySegment output, MemorySegment input, long bytes) throws Exception {
    long own = channel.rank * bytes;
    boolean inPlace = output.asSlice(own, bytes).equals(input.asSlice(0, bytes));
    if (bytes <= ShmLayout.SLOT_BYTES) {
      gatherSlots(op, output, input, bytes, inPlace);
      return;
    }
    boolean mapped = bytes >= HostReads.LEAST_MAPPED && reads.areMapped(op);
    boolean open = bytes >= LEAST_READ && reads.areOpen(op);
    if (mapped || open) {
      reads.lend();
      try {
        MemorySegment[] slots = show(output, input, mapped, open);
        channel.awaitSlots(op);
        if (ShmChannel.areAllSet(slots, 1) || ShmChannel.areAllSet(slots, 2)) {
          read(op, slots, output, inPlace ? MemorySegment.NULL : input, bytes);
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
    for (long offset = 0; offset < bytes; offset += chunk) {
      long next = offset + chunk;
      if (next < bytes) {
        stage(op, input, next, Math.min(chunk, bytes - next));
      }
      long length = Math.min(chunk, bytes - offset);
      if (!inPlace) {
        MemorySegment.copy(input, offset, output, own + offset, length);
      }
      long step = first + offset / chunk;
      for (int i = 1; i < channel.size; i++) {
        int peer = (channel.rank + i) % channel.size;
        channel.awaitPublished(op, peer, step);
        MemorySegment.copy(channel.stages(step)[peer], 0, output, peer * bytes + offset, length);
      }
      channel.finish(step);
    }
  }

  private void gatherSlots(
      Operation op, MemorySegment output, MemorySegment input, long bytes, boolean inPlace)
      throws Exception {
    MemorySegment[] slots = channel.beginSlots();
    MemorySegment.copy(input, 0, slots[channel.rank], 0, bytes);
    channel.publishSlot();
    if (!inPlace) {
      MemorySegment.copy(input, 0, output, channel.rank * bytes, bytes);
    }
    channel.awaitSlots(op);
    for (int i = 1; i < channel.size; i++) {
      int peer = (channel.rank + i) % channel.size;
      MemorySegment.copy(slots[peer], 0, output, peer * bytes, bytes);
    }
  }

  /** Shows where this rank's part is, and whether all ranks can see or read it there. */
  private MemorySegment[] show(
      MemorySegment output, MemorySegment input, boolean mapped, boolean open) {
    HostReads.requireAlive(input);
    MemorySegment[] slots = channel.beginSlots();
    boolean seen = mapped && SharedHeap.has(input);
    boolean readable = open && input.isNative() && output.isNative();
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
      Operation op, MemorySegment[] slots, MemorySegment output, MemorySegment own, long bytes)
      throws Exception {
    try {
      for (int i = 1; i < channel.size; i++) {
        int peer = (channel.rank + i) % channel.size;
        long address = slots[peer].get(ValueLayout.JAVA_LONG, 0);
        reads.copy(op, peer, address, output, peer * bytes, bytes);
      }
      if (own.byteSize() > 0) {
        MemorySegment.copy(own, 0, output, channel.rank * bytes, bytes);
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
    MemorySegment.copy(input, offset, channel.stages(step)[channel.rank], 0, length);
    channel.publish(step);
  }
}
