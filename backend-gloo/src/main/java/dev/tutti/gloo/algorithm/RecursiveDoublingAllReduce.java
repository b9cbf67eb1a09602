package dev.tutti.gloo.algorithm;

import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.Request;
import dev.tutti.spi.Operation;
import dev.tutti.spi.OperationPlan.Step;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * Reduces to all ranks by exchanging the whole tensor over growing distances: few steps, for small
 * tensors between Tutti ranks (Thakur, Rabenseifner, Gropp 2005).
 *
 * <table>
 * <caption>Cost for N ranks and S bytes</caption>
 * <tr><th>steps</th><th>bytes sent by each rank</th><th>bytes reduced by each rank</th></tr>
 * <tr><td>⌊log₂ N⌋, and 2 if N is no power of two</td><td>S·⌊log₂ N⌋</td><td>as many</td></tr>
 * </table>
 *
 * <p>Both ranks of a pair compute {@code lower op higher}: all ranks get bitwise identical results.
 */
public final class RecursiveDoublingAllReduce extends FoldedAllReduce {
  private final Scratch scratch;

  /**
   * Creates an instance for any number of operations, one at a time.
   *
   * @param transport connects the ranks, all of which are Tutti ranks
   */
  public RecursiveDoublingAllReduce(Endpoint transport, Scratch scratch) {
    super(transport);
    this.scratch = scratch;
  }

  @Override
  void exchange(Operation operation, long slot, MemorySegment memory, long bytes) throws Exception {
    MemorySegment received = scratch.atLeast(bytes);
    for (int distance = 1; distance < virtualSize; distance *= 2) {
      int peer = rankOf(virtualRank() ^ distance);
      Request receive = transport.receive(peer, slot, received, 0, bytes);
      Request send = transport.send(peer, slot, memory, 0, bytes);
      transport.await(receive, operation);
      transport.await(send, operation);
      if (transport.rank() < peer) {
        reduction.combine(memory, 0, received, 0, bytes);
      } else {
        reduction.combine(received, 0, memory, 0, bytes);
        MemorySegment.copy(received, 0, memory, 0, bytes);
      }
    }
  }

  /** Returns the steps, for {@code size} ranks. */
  static List<Step> steps(int size, double bytes) {
    List<Step> steps = new ArrayList<>();
    for (int distance = 1; distance < Integer.highestOneBit(size); distance *= 2) {
      steps.addAll(Flow.reducingSteps(distance, bytes));
    }
    return folded(size, bytes, steps);
  }
}
