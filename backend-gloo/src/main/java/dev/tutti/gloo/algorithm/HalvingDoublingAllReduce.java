package dev.tutti.gloo.algorithm;

import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.Request;
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
public final class HalvingDoublingAllReduce extends FoldedAllReduce {
  private long unit;
  private long units;

  /**
   * Prepares for any number of operations, one at a time.
   *
   * @param transport connects the ranks, all of Tutti
   */
  public HalvingDoublingAllReduce(Endpoint transport) {
    super(transport);
  }

  /*
   * The parts of all virtual ranks whose numbers agree with this one's in the bits above a distance
   * are one range of the tensor. Halving sends the half of that range that lies on the peer's side;
   * doubling sends the own half back. What a rank received of the result depends on what it sent
   * before, so no receive overtakes a send of the same bytes.
   */
  @Override
  void exchange(Operation operation, long slot, MemorySegment memory, long bytes) throws Exception {
    unit = reduction.unitBytes();
    units = bytes / unit;
    for (int distance = virtualSize / 2; distance > 0; distance /= 2) {
      step(operation, slot, memory, distance, true);
    }
    for (int distance = 1; distance < virtualSize; distance *= 2) {
      step(operation, slot, memory, distance, false);
    }
    transport.awaitSent(operation);
  }

  private void step(
      Operation operation, long slot, MemorySegment memory, int distance, boolean reduces)
      throws Exception {
    int own = virtualRank();
    int other = own ^ distance;
    int peer = rankOf(other);
    int in = reduces ? own : other;
    int out = reduces ? other : own;
    long received = start(in, distance);
    long receivedBytes = start(in + distance, distance) - received;
    long sent = start(out, distance);
    long sentBytes = start(out + distance, distance) - sent;
    Request receive = null;
    if (receivedBytes > 0) {
      receive =
          reduces
              ? transport.receiveCombining(peer, slot, memory, received, receivedBytes, reduction)
              : transport.receive(peer, slot, memory, received, receivedBytes);
    }
    if (sentBytes > 0) {
      transport.sendDetached(peer, slot, memory, sent, sentBytes);
    }
    if (receive != null) {
      transport.await(receive, operation);
    }
  }

  /** Returns the first byte of the parts of a virtual rank and of those it is grouped with. */
  private long start(int virtual, int distance) {
    long first = virtual & -distance;
    return units * first / virtualSize * unit;
  }
}
