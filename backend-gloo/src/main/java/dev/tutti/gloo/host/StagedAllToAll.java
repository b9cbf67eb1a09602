package dev.tutti.gloo.host;

import dev.tutti.MismatchException;
import dev.tutti.Tensor;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;

/**
 * Exchanges parts of any size between all ranks; each slot holds the sizes of the parts, which say
 * how many steps all take, and each stage a piece for every rank.
 *
 * <table>
 * <caption>Cost for N ranks, S bytes to each and stages of C</caption>
 * <tr><th>rounds</th><th>bytes written by each rank</th><th>bytes read by each rank</th></tr>
 * <tr><td>N S / C</td><td>2 N S</td><td>2 N S</td></tr>
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
    if (piece == 0 || 16L * size > HostLayout.SLOT_BYTES) {
      throw new IllegalStateException(size + " ranks are too many for stages of shared memory");
    }
    MemorySegment[] slots = channel.beginSlots();
    for (int peer = 0; peer < size; peer++) {
      slots[rank].setAtIndex(ValueLayout.JAVA_LONG, peer, inputs.get(peer).byteSize());
      slots[rank].setAtIndex(ValueLayout.JAVA_LONG, size + peer, outputs.get(peer).byteSize());
    }
    channel.publishSlot();
    long longest = 0;
    long offset = 0;
    do {
      // How many steps there are, other ranks say.
      channel.throwIfOver(op);
      channel.beginStep(op);
      long step = channel.step();
      MemorySegment[] stages = channel.stages(step);
      for (int peer = 0; peer < size; peer++) {
        if (peer != rank) {
          copy(inputs.get(peer), offset, stages[rank], peer * piece, piece);
        }
      }
      channel.publish(step);
      if (outputs.get(rank).byteSize() == inputs.get(rank).byteSize()) {
        copy(inputs.get(rank), offset, outputs.get(rank).segment(), offset, piece);
      }
      if (offset == 0) {
        channel.awaitSlots(op);
        longest = check(slots);
      }
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
      offset += piece;
    } while (offset < longest);
  }

  private static void copy(
      Tensor input, long offset, MemorySegment stage, long stageOffset, long piece) {
    long length = Math.min(piece, input.byteSize() - offset);
    if (length > 0) {
      MemorySegment.copy(input.segment(), offset, stage, stageOffset, length);
    }
  }

  /**
   * Compares the sizes that all ranks have, so that all hear if any two disagree; returns that of
   * the longest part of all.
   */
  private long check(MemorySegment[] slots) {
    int size = channel.size;
    long longest = 0;
    for (int from = 0; from < size; from++) {
      for (int to = 0; to < size; to++) {
        long sent = slots[from].getAtIndex(ValueLayout.JAVA_LONG, to);
        long expected = slots[to].getAtIndex(ValueLayout.JAVA_LONG, size + from);
        if (sent != expected) {
          throw new MismatchException(
              "ranks disagree: rank "
                  + from
                  + " sends "
                  + sent
                  + " bytes to rank "
                  + to
                  + ", which expects "
                  + expected);
        }
        longest = Math.max(longest, sent);
      }
    }
    return longest;
  }
}
