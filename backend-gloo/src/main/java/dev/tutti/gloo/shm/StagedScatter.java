package dev.tutti.gloo.shm;

import dev.tutti.Tensor;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Scatters equal parts from the root; each of its stages holds a piece for every rank.
 *
 * <table>
 * <caption>Cost for N ranks and S bytes for each in stages of C</caption>
 * <tr><th>rounds</th><th>bytes written by the root</th><th>bytes read by each other rank</th></tr>
 * <tr><td>N S / C</td><td>N S</td><td>S</td></tr>
 * </table>
 */
final class StagedScatter {
  private final ShmChannel channel;

  StagedScatter(ShmChannel channel) {
    this.channel = channel;
  }

  /**
   * Scatters the parts.
   *
   * @param output receives this rank's part
   * @param inputs on the root, one tensor for each rank
   * @param root the rank that scatters
   */
  void run(Operation op, Tensor output, List<Tensor> inputs, int root) throws Exception {
    int size = channel.size;
    int rank = channel.rank;
    long bytes = output.byteSize();
    long piece = Parts.piece(channel.layout.stageBytes(), size);
    for (long offset = 0; offset < bytes; offset += piece) {
      long length = Math.min(piece, bytes - offset);
      channel.beginStep(op);
      long step = channel.step();
      MemorySegment stage = channel.stages(step)[root];
      if (rank == root) {
        for (int peer = 0; peer < size; peer++) {
          if (peer != root) {
            MemorySegment.copy(inputs.get(peer).segment(), offset, stage, peer * piece, length);
          }
        }
        channel.publish(step);
      } else {
        channel.awaitPublished(op, root, step);
        MemorySegment.copy(stage, rank * piece, output.segment(), offset, length);
      }
      channel.finish(step);
    }
    if (rank == root) {
      MemorySegment.copy(inputs.get(root).segment(), 0, output.segment(), 0, bytes);
    }
  }
}
