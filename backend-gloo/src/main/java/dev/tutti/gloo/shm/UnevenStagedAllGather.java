package dev.tutti.gloo.shm;

import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Gathers parts of unequal size on all ranks in chunks; there are as many chunks as the largest
 * part needs.
 *
 * <table>
 * <caption>Cost for N ranks, parts of S bytes in all, the largest of L, in chunks of C</caption>
 * <tr><th>rounds</th><th>bytes written by each rank</th></tr>
 * <tr><td>L / C</td><td>less than 2 S</td></tr>
 * </table>
 */
public final class UnevenStagedAllGather {
  private final ShmChannel channel;

  public UnevenStagedAllGather(ShmChannel channel) {
    this.channel = channel;
  }

  /**
   * Gathers the parts.
   *
   * @param memory the parts, in rank order, one after the other; this rank's own part is already in
   *     place
   * @param bytes the size of each part in bytes; the same on all ranks
   */
  public void run(Operation op, MemorySegment memory, long[] bytes) throws Exception {
    int size = channel.size;
    int rank = channel.rank;
    long chunk = channel.layout.stageBytes();
    long[] offsets = new long[size + 1];
    long longest = 0;
    for (int r = 0; r < size; r++) {
      offsets[r + 1] = offsets[r] + bytes[r];
      longest = Math.max(longest, bytes[r]);
    }
    for (long offset = 0; offset < longest; offset += chunk) {
      channel.beginStep(op);
      long step = channel.step();
      MemorySegment[] stages = channel.stages(step);
      long own = Math.min(chunk, bytes[rank] - offset);
      if (own > 0) {
        MemorySegment.copy(memory, offsets[rank] + offset, stages[rank], 0, own);
      }
      channel.publish(step);
      for (int i = 1; i < size; i++) {
        int peer = (rank + i) % size;
        long length = Math.min(chunk, bytes[peer] - offset);
        channel.awaitPublished(op, peer, step);
        if (length > 0) {
          MemorySegment.copy(stages[peer], 0, memory, offsets[peer] + offset, length);
        }
      }
      channel.finish(step);
    }
  }
}
