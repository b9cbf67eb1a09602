package dev.tutti.gloo.shm;

import dev.tutti.Tensor;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Gathers equal parts on the root in chunks.
 *
 * <table>
 * <caption>Cost for N ranks and S bytes of each in chunks of C</caption>
 * <tr><th>rounds</th><th>bytes written by each rank</th><th>bytes read by the root</th></tr>
 * <tr><td>S / C</td><td>S</td><td>(N - 1) S</td></tr>
 * </table>
 */
final class StagedGather {
  private final ShmChannel channel;

  StagedGather(ShmChannel channel) {
    this.channel = channel;
  }

  /**
   * Gathers the parts.
   *
   * @param outputs on the root, one tensor for each rank
   * @param input this rank's part
   * @param root the rank that gathers
   */
  void run(Operation op, List<Tensor> outputs, Tensor input, int root) throws Exception {
    int size = channel.size;
    long bytes = input.byteSize();
    long chunk = channel.layout.stageBytes();
    for (long offset = 0; offset < bytes; offset += chunk) {
      long length = Math.min(chunk, bytes - offset);
      channel.beginStep(op);
      long step = channel.step();
      MemorySegment[] stages = channel.stages(step);
      if (channel.rank == root) {
        for (int i = 1; i < size; i++) {
          int peer = (root + i) % size;
          channel.awaitPublished(op, peer, step);
          MemorySegment.copy(stages[peer], 0, outputs.get(peer).segment(), offset, length);
        }
      } else {
        MemorySegment.copy(input.segment(), offset, stages[channel.rank], 0, length);
        channel.publish(step);
      }
      channel.finish(step);
    }
    if (channel.rank == root) {
      MemorySegment.copy(input.segment(), 0, outputs.get(root).segment(), 0, bytes);
    }
  }
}
