package dev.tutti.gloo.host;

import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Copies the root's bytes to all ranks in chunks, through the root's stages.
 *
 * <table>
 * <caption>Cost for N ranks and S bytes in chunks of C</caption>
 * <tr><th>rounds</th><th>bytes written by the root</th><th>bytes read by each other rank</th></tr>
 * <tr><td>S / C</td><td>S</td><td>S</td></tr>
 * </table>
 */
final class StagedBroadcast {
  private final HostChannel channel;

  StagedBroadcast(HostChannel channel) {
    this.channel = channel;
  }

  void run(Operation op, MemorySegment tensor, long bytes, int root) throws Exception {
    long chunk = channel.layout.stageBytes();
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
