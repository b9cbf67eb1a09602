package dev.tutti.gloo.algorithm;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gloo.transport.Request;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Reduces to all ranks by exchanges of halves, quarters and so on, after which each rank has the
 * result of a part, and by the same exchanges backwards: for tensors of middling size between ranks
 * of Tutti (Rabenseifner: Optimization of Collective Reduction Operations, 2004).
 *
 * <table>
 * <caption>Cost for N ranks and S bytes</caption>
 * <tr><th>steps</th><th>bytes sent by each rank</th><th>bytes reduced by each rank</th></tr>
 * <tr><td>2·⌊log₂ N⌋, and 2 if N is no power of two</td><td>2·S·(N−1)/N, or 3·S</td>
 *     <td>S·(N−1)/N</td></tr>
 * </table>
 *
 * <p>Each part is reduced on one rank and copied: all ranks hold the same bits.
 */
public final class HalvingDoublingAllReduce {
  private final Transport transport;
  private final Fold fold;
  private final Reduction reduction = new Reduction();
  private long unit;
  private long units;

  /**
   * Prepares for any number of operations, one at a time.
   *
   * @param transport connects the ranks, all of Tutti
   */
  public HalvingDoublingAllReduce(Transport transport) {
    this.transport = transport;
    this.fold = new Fold(transport);
  }

  /**
   * Reduces in place.
   *
   * @param operation carries the deadline
   * @param tag number of the collective
   * @param tensor contiguous
   * @param op the operator
   * @throws Exception if a wait ended without success
   */
  public void run(Operation operation, int tag, Tensor tensor, ReduceOp op) throws Exception {
    Reduction.before(op, tensor);
    long bytes = tensor.byteSize();
    if (transport.size() > 1 && bytes > 0) {
      MemorySegment memory = tensor.segment();
      long slot = Slot.ALL_REDUCE.of(tag);
      reduction.set(op, tensor);
      unit = reduction.unitBytes();
      units = bytes / unit;
      fold.begin(operation, slot, memory, bytes, reduction);
      if (!fold.isAway()) {
        exchange(operation, slot, memory);
      }
      fold.end(operation, slot, memory, bytes);
      transport.flush();
    }
    Reduction.after(op, tensor, transport.size());
  }

  /*
   * The parts of all virtual ranks whose numbers agree with this one's in the bits above a distance
   * are one range of the tensor. Halving sends the half of that range that lies on the peer's side;
   * doubling sends the own half back. What a rank received of the result depends on what it sent
   * before, so no receive overtakes a send of the same bytes.
   */
  private void exchange(Operation operation, long slot, MemorySegment memory) throws Exception {
    int own = fold.virtualRank();
    for (int distance = fold.size / 2; distance > 0; distance /= 2) {
      int peer = fold.rankOf(own ^ distance);
      long kept = start(own, distance);
      long keptBytes = start(own + distance, distance) - kept;
      long sent = start(own ^ distance, distance);
      long sentBytes = start((own ^ distance) + distance, distance) - sent;
      Request receive =
          keptBytes == 0
              ? null
              : transport.receiveCombining(peer, slot, memory, kept, keptBytes, reduction);
      if (sentBytes > 0) {
        transport.sendDetached(peer, slot, memory, sent, sentBytes);
      }
      if (receive != null) {
        transport.await(receive, operation);
      }
    }
    for (int distance = 1; distance < fold.size; distance *= 2) {
      int peer = fold.rankOf(own ^ distance);
      long kept = start(own, distance);
      long keptBytes = start(own + distance, distance) - kept;
      long other = start(own ^ distance, distance);
      long otherBytes = start((own ^ distance) + distance, distance) - other;
      Request receive =
          otherBytes == 0 ? null : transport.receive(peer, slot, memory, other, otherBytes);
      if (keptBytes > 0) {
        transport.sendDetached(peer, slot, memory, kept, keptBytes);
      }
      if (receive != null) {
        transport.await(receive, operation);
      }
    }
    transport.awaitSent(operation);
  }

  /** Returns the first byte of the parts of a virtual rank and of those it is grouped with. */
  private long start(int virtual, int distance) {
    long first = virtual & -distance;
    return units * first / fold.size * unit;
  }
}
