package dev.tutti.gloo.host;

import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Gathers equal parts on all ranks in chunks: each stages its own and copies those of the others.
 *
 * <table>
 * <caption>Cost for N ranks and S bytes of each in chunks of C</caption>
 * <tr><th>rounds</th><th>bytes written by each rank</th><th>bytes read by each rank</th></tr>
 * <tr><td>S / C</td><td>(N + 1) S</td><td>(N + 1) S</td></tr>
 * </table>
 */
final class StagedAllGather {
  private final HostChannel channel;

  StagedAllGather(HostChannel channel) {
    this.channel = channel;
  }

  /**
   * Gathers.
   *
   * @param op carries the deadline
   * @param output the parts by rank; this rank's own is there already
   * @param bytes of each part
   * @throws Exception if a wait ended without success
   */
  void run(Operation op, MemorySegment output, long bytes) throws Exception {
    int size = channel.size;
    long chunk = channel.layout.stageBytes();
    long own = channel.rank * bytes;
    for (long offset = 0; offset < bytes; offset += chunk) {
      long length = Math.min(chunk, bytes - offset);
      channel.beginStep(op);
      long step = channel.step();
      MemorySegment[] stages = channel.stages(step);
      MemorySegment.copy(output, own + offset, stages[channel.rank], 0, length);
      channel.publish(step);
      for (int i = 1; i < size; i++) {
        int peer = (channel.rank + i) % size;
        channel.awaitPublished(op, peer, step);
        MemorySegment.copy(stages[peer], 0, output, peer * bytes + offset, length);
      }
      channel.finish(step);
    }
  }
}
