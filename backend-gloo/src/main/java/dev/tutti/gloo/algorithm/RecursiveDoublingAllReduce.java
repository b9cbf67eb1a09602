package dev.tutti.gloo.algorithm;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gloo.transport.Request;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Reduces to all ranks by exchanges of the whole over growing distances: few steps, for small
 * tensors between ranks of Tutti (Thakur, Rabenseifner, Gropp 2005).
 *
 * <table>
 * <caption>Cost for N ranks and S bytes</caption>
 * <tr><th>steps</th><th>bytes sent by each rank</th><th>bytes reduced by each rank</th></tr>
 * <tr><td>⌊log₂ N⌋, and 2 if N is no power of two</td><td>S·⌊log₂ N⌋</td><td>as many</td></tr>
 * </table>
 *
 * <p>Of two ranks both compute {@code lower op higher}: all ranks hold the same bits.
 */
public final class RecursiveDoublingAllReduce {
  private final Transport transport;
  private final Scratch scratch;
  private final Fold fold;
  private final Reduction reduction = new Reduction();

  /**
   * Prepares for any number of operations, one at a time.
   *
   * @param transport connects the ranks, all of Tutti
   * @param scratch memory shared with other algorithms
   */
  public RecursiveDoublingAllReduce(Transport transport, Scratch scratch) {
    this.transport = transport;
    this.scratch = scratch;
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
      fold.begin(operation, slot, memory, bytes, reduction);
      if (!fold.isAway()) {
        for (int distance = 1; distance < fold.size; distance <<= 1) {
          exchange(operation, slot, memory, bytes, distance);
        }
      }
      fold.end(operation, slot, memory, bytes);
      transport.flush();
    }
    Reduction.after(op, tensor, transport.size());
  }

  private void exchange(
      Operation operation, long slot, MemorySegment memory, long bytes, int distance)
      throws Exception {
    int peer = fold.rankOf(fold.virtualRank() ^ distance);
    MemorySegment received = scratch.atLeast(bytes);
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
