package dev.tutti.gloo.shm;

import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Copies the root's bytes to all ranks: a few bytes in the root's slot, many bytes in chunks
 * through its stages. All ranks meet before any rank takes a chunk, so that ranks with different
 * roots detect this; the root meanwhile fills its stages.
 *
 * <table>
 * <caption>Cost for N ranks and S bytes in chunks of C</caption>
 * <tr><th>rounds</th><th>bytes written by the root</th><th>bytes read by each other rank</th></tr>
 * <tr><td>1 + S / C</td><td>S</td><td>S</td></tr>
 * </table>
 */
public final class StagedBroadcast {
  // Enough to overlap the root's copies with those of the others, but not so small as to be slow.
  private static final int CHUNKS = 4;
  private static final long MIN_CHUNK = 16 * 1024;

  private final ShmChannel channel;

  public StagedBroadcast(ShmChannel channel) {
    this.channel = channel;
  }

  public void run(Operation op, MemorySegment tensor, long bytes, int root) throws Exception {
    boolean small = bytes <= ShmLayout.SLOT_BYTES;
    MemorySegment[] slots = channel.beginSlots();
    if (small && channel.rank == root) {
      MemorySegment.copy(tensor, 0, slots[root], 0, bytes);
    }
    channel.publishSlot();
    long chunk = chunk(channel.layout.stageBytes(), bytes);
    long ahead = Math.min(bytes, ShmLayout.DEPTH * chunk);
    boolean stages = !small && channel.rank == root;
    if (stages) {
      stage(op, tensor, 0, ahead, chunk);
    }
    channel.awaitSlots(op);
    if (stages) {
      stage(op, tensor, ahead, bytes, chunk);
    } else if (!small) {
      take(op, tensor, bytes, chunk, root);
    } else if (channel.rank != root) {
      MemorySegment.copy(slots[root], 0, tensor, 0, bytes);
    }
  }

  /** Returns the number of bytes that are staged at a time. */
  static long chunk(long stageBytes, long bytes) {
    return Math.min(stageBytes, Math.max(MIN_CHUNK, bytes / CHUNKS));
  }

  private void stage(Operation op, MemorySegment tensor, long from, long to, long chunk)
      throws Exception {
    for (long offset = from; offset < to; offset += chunk) {
      channel.beginStep(op);
      long step = channel.step();
      MemorySegment own = channel.stages(step)[channel.rank];
      MemorySegment.copy(tensor, offset, own, 0, Math.min(chunk, to - offset));
      channel.publish(step);
      channel.finish(step);
    }
  }

  private void take(Operation op, MemorySegment tensor, long bytes, long chunk, int root)
      throws Exception {
    for (long offset = 0; offset < bytes; offset += chunk) {
      long step = channel.advance(1);
      channel.awaitPublished(op, root, step);
      MemorySegment theirs = channel.stages(step)[root];
      MemorySegment.copy(theirs, 0, tensor, offset, Math.min(chunk, bytes - offset));
      channel.finish(step);
    }
  }
}
