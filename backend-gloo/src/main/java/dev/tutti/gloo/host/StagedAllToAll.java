package dev.tutti.gloo.host;

import dev.tutti.MismatchException;
import dev.tutti.Tensor;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;

/**
 * Exchanges parts of any size between all ranks; each stage holds a piece for every rank. First the
 * ranks tell each other the sizes, so that all take the same number of steps.
 *
 * <table>
 * <caption>Cost for N ranks, S bytes to each and stages of C</caption>
 * <tr><th>rounds</th><th>bytes written by each rank</th><th>bytes read by each rank</th></tr>
 * <tr><td>1 + N S / C</td><td>2 N S</td><td>2 N S</td></tr>
 * </table>
 */
final class StagedAllToAll {
  private final HostChannel channel;

  StagedAllToAll(HostChannel channel) {
    this.channel = channel;
  }

  /**
   * Exchanges.
   *
   * @param op carries the deadline
   * @param outputs where the part of each rank goes
   * @param inputs what each rank gets, as long as its output for this rank
   * @throws Exception if a wait ended without success
   */
  void run(Operation op, List<Tensor> outputs, List<Tensor> inputs) throws Exception {
    int size = channel.size;
    int rank = channel.rank;
    long piece = Parts.piece(channel.layout.stageBytes(), size);
    long longest = agree(op, outputs, inputs);
    for (long offset = 0; offset < longest; offset += piece) {
      // How many steps there are, other ranks say.
      channel.throwIfOver(op);
      channel.beginStep(op);
      long step = channel.step();
      MemorySegment[] stages = channel.stages(step);
      for (int peer = 0; peer < size; peer++) {
        long length = Math.min(piece, inputs.get(peer).byteSize() - offset);
        if (peer != rank && length > 0) {
          MemorySegment.copy(
              inputs.get(peer).segment(), offset, stages[rank], peer * piece, length);
        }
      }
      channel.publish(step);
      for (int i = 1; i < size; i++) {
        int peer = (rank + i) % size;
        long length = Math.min(piece, outputs.get(peer).byteSize() - offset);
        channel.awaitPublished(op, peer, step);
        if (length > 0) {
          MemorySegment.copy(
              stages[peer], rank * piece, outputs.get(peer).segment(), offset, length);
        }
      }
      channel.finish(step);
    }
    MemorySegment own = outputs.get(rank).segment();
    MemorySegment.copy(inputs.get(rank).segment(), 0, own, 0, inputs.get(rank).byteSize());
  }

  /** Shows all ranks how long each part is; returns the length of the longest of all. */
  private long agree(Operation op, List<Tensor> outputs, List<Tensor> inputs) throws Exception {
    int size = channel.size;
    if (8L * size > channel.layout.stageBytes()) {
      throw new IllegalStateException(size + " ranks are too many for stages of shared memory");
    }
    channel.beginStep(op);
    long step = channel.step();
    MemorySegment[] stages = channel.stages(step);
    for (int peer = 0; peer < size; peer++) {
      stages[channel.rank].setAtIndex(ValueLayout.JAVA_LONG, peer, inputs.get(peer).byteSize());
    }
    channel.publish(step);
    channel.awaitAllPublished(op, step);
    long longest = 0;
    for (int peer = 0; peer < size; peer++) {
      long sent = stages[peer].getAtIndex(ValueLayout.JAVA_LONG, channel.rank);
      long expected = outputs.get(peer).byteSize();
      if (sent != expected) {
        throw new MismatchException(
            "ranks disagree: rank "
                + peer
                + " sends "
                + sent
                + " bytes to rank "
                + channel.rank
                + ", which expects "
                + expected);
      }
      for (int other = 0; other < size; other++) {
        longest = Math.max(longest, stages[peer].getAtIndex(ValueLayout.JAVA_LONG, other));
      }
    }
    channel.finish(step);
    return longest;
  }
}
