package dev.tutti.gloo.shm;

import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Copies parts of equal size, of which each rank holds some, to all ranks in chunks; there are as
 * many chunks as the rank with the most parts needs.
 *
 * <table>
 * <caption>Cost for N ranks and S bytes in all, spread evenly, in chunks of C</caption>
 * <tr><th>rounds</th><th>bytes written by each rank</th><th>bytes read by each rank</th></tr>
 * <tr><td>S / N / C</td><td>S</td><td>S</td></tr>
 * </table>
 */
public final class StagedSpread {
  private final ShmChannel channel;

  public StagedSpread(ShmChannel channel) {
    this.channel = channel;
  }

  /**
   * Spreads the parts.
   *
   * @param op carries the deadline
   * @param memory memory for all parts, in which this rank's parts are already in place
   * @param bytes the size of each part in bytes
   * @param held for each rank, the numbers of the parts that it holds
   * @throws Exception if a wait fails
   */
  public void run(Operation op, MemorySegment memory, long bytes, int[][] held) throws Exception {
    int size = channel.size;
    int rank = channel.rank;
    long chunk = channel.layout.stageBytes();
    long longest = 0;
    for (int[] parts : held) {
      longest = Math.max(longest, parts.length * bytes);
    }
    for (long offset = 0; offset < longest; offset += chunk) {
      channel.beginStep(op);
      long step = channel.step();
      MemorySegment[] stages = channel.stages(step);
      copy(memory, bytes, held[rank], offset, stages[rank], true);
      channel.publish(step);
      for (int i = 1; i < size; i++) {
        int peer = (rank + i) % size;
        channel.awaitPublished(op, peer, step);
        copy(memory, bytes, held[peer], offset, stages[peer], false);
      }
      channel.finish(step);
    }
  }

  /**
   * Copies the contents of the chunk at an offset, counting a rank's parts as one consecutive
   * sequence.
   */
  private void copy(
      MemorySegment memory,
      long bytes,
      int[] parts,
      long offset,
      MemorySegment stage,
      boolean stages) {
    long end = Math.min(parts.length * bytes, offset + channel.layout.stageBytes());
    long at = offset;
    while (at < end) {
      long within = at % bytes;
      long length = Math.min(bytes - within, end - at);
      long place = parts[(int) (at / bytes)] * bytes + within;
      if (stages) {
        MemorySegment.copy(memory, place, stage, at - offset, length);
      } else {
        MemorySegment.copy(stage, at - offset, memory, place, length);
      }
      at += length;
    }
  }
}
