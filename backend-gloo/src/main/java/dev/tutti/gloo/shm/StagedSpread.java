package dev.tutti.gloo.shm;

import dev.tutti.gloo.algorithm.TensorParts;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Copies parts, of which each rank holds some, to all ranks in chunks; there are as many chunks as
 * the rank with the most parts needs.
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
   * @param parts all parts, of which this rank's are already in place
   * @param held for each rank, the numbers of the parts that it holds
   */
  public void run(Operation op, TensorParts parts, int[][] held) throws Exception {
    int size = channel.size;
    int rank = channel.rank;
    long chunk = channel.layout.stageBytes();
    long longest = 0;
    for (int[] own : held) {
      long bytes = 0;
      for (int part : own) {
        bytes += parts.bytes(part);
      }
      longest = Math.max(longest, bytes);
    }
    for (long offset = 0; offset < longest; offset += chunk) {
      channel.beginStep(op);
      long step = channel.step();
      MemorySegment[] stages = channel.stages(step);
      copy(parts, held[rank], offset, stages[rank], true);
      channel.publish(step);
      for (int i = 1; i < size; i++) {
        int peer = (rank + i) % size;
        channel.awaitPublished(op, peer, step);
        copy(parts, held[peer], offset, stages[peer], false);
      }
      channel.finish(step);
    }
  }

  /**
   * Copies the contents of the chunk at an offset, counting a rank's parts as one consecutive
   * sequence.
   */
  private void copy(
      TensorParts parts, int[] held, long offset, MemorySegment stage, boolean stages) {
    long end = offset + channel.layout.stageBytes();
    long begin = 0;
    for (int part : held) {
      long from = Math.max(begin, offset);
      long length = Math.min(begin + parts.bytes(part), end) - from;
      long place = parts.offset(part) + from - begin;
      if (length > 0 && stages) {
        MemorySegment.copy(parts.memory(part), place, stage, from - offset, length);
      } else if (length > 0) {
        MemorySegment.copy(stage, from - offset, parts.memory(part), place, length);
      }
      begin += parts.bytes(part);
    }
  }
}
