package dev.tutti.gloo.host;

import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Gathers equal parts on all ranks in chunks: each stages its own, one chunk ahead, and copies
 * those of the others.
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
   * @param output takes the parts by rank
   * @param input begins with this rank's part; may be the place of it in the output
   * @param bytes of each part
   * @throws Exception if a wait ended without success
   */
  void run(Operation op, MemorySegment output, MemorySegment input, long bytes) throws Exception {
    long own = channel.rank * bytes;
    boolean inPlace = output.asSlice(own, bytes).equals(input.asSlice(0, bytes));
    long chunk = channel.layout.stageBytes();
    long first = channel.step() + 1;
    if (bytes > 0) {
      stage(op, input, 0, Math.min(chunk, bytes));
    }
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

  private void stage(Operation op, MemorySegment input, long offset, long length) throws Exception {
    channel.beginStep(op);
    long step = channel.step();
    MemorySegment.copy(input, offset, channel.stages(step)[channel.rank], 0, length);
    channel.publish(step);
  }
}
