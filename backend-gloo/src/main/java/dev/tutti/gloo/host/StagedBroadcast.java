package dev.tutti.gloo.host;

import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Copies the root's bytes to all ranks: few bytes in the root's slot, many in chunks through its
 * stages. All ranks meet first, so that ranks with different roots hear of it.
 *
 * <table>
 * <caption>Cost for N ranks and S bytes in chunks of C</caption>
 * <tr><th>rounds</th><th>bytes written by the root</th><th>bytes read by each other rank</th></tr>
 * <tr><td>1 + S / C</td><td>S</td><td>S</td></tr>
 * </table>
 */
final class StagedBroadcast {
  // So many that others copy out while the root copies in, but not so small that a step costs more.
  private static final int CHUNKS = 4;
  private static final long MIN_CHUNK = 16 * 1024;

  private final HostChannel channel;

  StagedBroadcast(HostChannel channel) {
    this.channel = channel;
  }

  void run(Operation op, MemorySegment tensor, long bytes, int root) throws Exception {
    boolean small = bytes <= HostLayout.SLOT_BYTES;
    MemorySegment[] slots = channel.beginSlots();
    if (small && channel.rank == root) {
      MemorySegment.copy(tensor, 0, slots[root], 0, bytes);
    }
    channel.publishSlot();
    channel.awaitSlots(op);
    if (!small) {
      stage(op, tensor, bytes, root);
    } else if (channel.rank != root) {
      MemorySegment.copy(slots[root], 0, tensor, 0, bytes);
    }
  }

  private void stage(Operation op, MemorySegment tensor, long bytes, int root) throws Exception {
    long chunk = Math.min(channel.layout.stageBytes(), Math.max(MIN_CHUNK, bytes / CHUNKS));
    for (long offset = 0; offset < bytes; offset += chunk) {
      long length = Math.min(chunk, bytes - offset);
      channel.beginStep(op);
      long step = channel.step();
      MemorySegment stage = channel.stages(step)[root];
      if (channel.rank == root) {
        MemorySegment.copy(tensor, offset, stage, 0, length);
        channel.publish(step);
      } else {
        channel.awaitPublished(op, root, step);
        MemorySegment.copy(stage, 0, tensor, offset, length);
      }
      channel.finish(step);
    }
  }
}
