package dev.tutti.gloo.algorithm;

import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.Request;
import dev.tutti.spi.Operation;
import dev.tutti.spi.OperationPlan.Step;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Reduces to all ranks by exchanging halves, quarters and so on, after which each rank has the
 * result of one part, and then the same exchanges in reverse order; for medium-sized tensors
 * between Tutti ranks (Rabenseifner: Optimization of Collective Reduction Operations, 2004).
 *
 * <table>
 * <caption>Cost for N ranks and S bytes</caption>
 * <tr><th>steps</th><th>bytes sent by each rank</th><th>bytes reduced by each rank</th></tr>
 * <tr><td>2·⌊log₂ N⌋, and 2 if N is no power of two</td><td>2·S·(N−1)/N, or 3·S</td>
 *     <td>S·(N−1)/N</td></tr>
 * </table>
 *
 * <p>A large tensor goes through these steps in pieces. Each part is reduced on one rank and then
 * copied: all ranks get bitwise identical results.
 */
public final class HalvingDoublingAllReduce extends FoldedAllReduce {
  /*
   * The tensor is cut into pieces that are exchanged one step apart. Reduced data is thus sent
   * while it is still in the cache, and one piece is reduced while others are in transit. A step of
   * a piece begins when the piece's previous step has ended; all ranks begin steps in the same
   * order, and messages between two ranks are matched in order.
   *
   * In a piece, the parts of all virtual ranks whose numbers agree with this one's in the bits
   * above a distance are one range. Halving sends the half of that range that lies on the peer's
   * side; doubling sends this rank's half back. What a rank receives of the result depends on what
   * it sent before, so no receive overtakes a send of the same bytes.
   */
  private final long pieceBytes;
  private final int steps;
  private final @Nullable Request[] receives;
  private long units;
  private long pieces;

  /**
   * Creates an instance for any number of operations, one at a time.
   *
   * @param transport connects the ranks, all of which are Tutti ranks
   * @param pieceBytes the size of a piece in bytes, the same on all ranks
   */
  public HalvingDoublingAllReduce(Endpoint transport, long pieceBytes) {
    super(transport);
    this.pieceBytes = pieceBytes;
    steps = 2 * Integer.numberOfTrailingZeros(virtualSize);
    receives = new @Nullable Request[steps];
  }

  @Override
  void exchange(Operation operation, long slot, MemorySegment memory, long bytes) throws Exception {
    units = bytes / reduction.unitBytes();
    pieces = Math.max(1, bytes / pieceBytes);
    for (long time = 0; time < pieces + steps; time++) {
      for (int step = (int) Math.min(time, steps); step >= 0; step--) {
        long piece = time - step;
        if (piece < pieces) {
          if (step > 0) {
            Flow.await(transport, operation, receives, step - 1);
          }
          if (step < steps) {
            begin(slot, memory, piece, step);
          }
        }
      }
    }
    transport.awaitSent(operation);
  }

  private void begin(long slot, MemorySegment memory, long piece, int step) {
    boolean reduces = step < steps / 2;
    int distance = reduces ? virtualSize >> (step + 1) : 1 << (step - steps / 2);
    int own = virtualRank();
    int other = own ^ distance;
    int peer = rankOf(other);
    int in = reduces ? own : other;
    int out = reduces ? other : own;
    long received = start(piece, in, distance);
    long receivedBytes = start(piece, in + distance, distance) - received;
    long sent = start(piece, out, distance);
    long sentBytes = start(piece, out + distance, distance) - sent;
    if (receivedBytes > 0) {
      receives[step] =
          reduces
              ? transport.receiveCombining(peer, slot, memory, received, receivedBytes, reduction)
              : transport.receive(peer, slot, memory, received, receivedBytes);
    }
    if (sentBytes > 0) {
      transport.sendDetached(peer, slot, memory, sent, sentBytes);
    }
  }

  /** Returns the offset of the first byte of the parts of a virtual rank and its group. */
  private long start(long piece, int virtual, int distance) {
    int first = virtual & -distance;
    long begin = units * piece / pieces;
    long end = units * (piece + 1) / pieces;
    return (begin + (end - begin) * first / virtualSize) * reduction.unitBytes();
  }

  /** Returns the steps, for {@code size} ranks and pieces of {@code pieceBytes}. */
  static List<Step> steps(int size, long bytes, long pieceBytes) {
    int virtualSize = Integer.highestOneBit(size);
    double pieces = Math.max(1, bytes / pieceBytes);
    List<Step> halving = new ArrayList<>();
    List<Step> doubling = new ArrayList<>();
    for (int distance = virtualSize / 2; distance > 0; distance /= 2) {
      double sent = (double) bytes * distance / virtualSize;
      Step step = Step.network(distance, 1, pieces, sent / pieces);
      halving.add(step.reducing(sent));
      doubling.addFirst(step);
    }
    halving.addAll(doubling);
    return folded(size, (double) bytes, halving);
  }
}
