package dev.tutti.gloo.algorithm;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.spi.Operation;
import dev.tutti.spi.OperationPlan.Step;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * Adapts an all-reduce for a power of two of ranks to any number of ranks. The first ranks form as
 * many pairs as there are excess ranks. The even rank of a pair hands its elements to the odd one,
 * sits out, and gets the result at the end (Thakur, Rabenseifner, Gropp: Optimization of Collective
 * Communication Operations in MPICH, 2005).
 */
abstract class FoldedAllReduce {
  final Endpoint transport;
  final Reduction reduction = new Reduction();

  /** The number of ranks that take part, a power of two. */
  final int virtualSize;

  private final int rank;
  private final int pairs;

  FoldedAllReduce(Endpoint transport) {
    this.transport = transport;
    this.rank = transport.rank();
    this.virtualSize = Integer.highestOneBit(transport.size());
    this.pairs = transport.size() - virtualSize;
  }

  /**
   * Reduces in place.
   *
   * @param op the operator, but not AVG
   */
  public final void run(Operation operation, int tag, Tensor tensor, ReduceOp op) throws Exception {
    Reduction.before(op, tensor);
    long bytes = tensor.byteSize();
    if (transport.size() > 1 && bytes > 0) {
      MemorySegment memory = tensor.segment();
      long slot = Slot.ALL_REDUCE.of(tag);
      reduction.set(op, tensor);
      begin(operation, slot, memory, bytes);
      if (!isAway()) {
        exchange(operation, slot, memory, bytes);
      }
      end(operation, slot, memory, bytes);
      transport.flush();
    }
  }

  /** Reduces to all ranks that take part; called only on those. */
  abstract void exchange(Operation operation, long slot, MemorySegment memory, long bytes)
      throws Exception;

  /** Returns this rank's number among the ranks that take part. */
  final int virtualRank() {
    return rank < 2 * pairs ? rank / 2 : rank - pairs;
  }

  /** Returns the rank with the given number among those that take part. */
  final int rankOf(int virtual) {
    return virtual < pairs ? 2 * virtual + 1 : virtual + pairs;
  }

  private boolean isAway() {
    return rank < 2 * pairs && rank % 2 == 0;
  }

  private void begin(Operation operation, long slot, MemorySegment memory, long bytes)
      throws Exception {
    if (rank >= 2 * pairs) {
      return;
    }
    if (isAway()) {
      transport.await(transport.send(rank + 1, slot, memory, 0, bytes), operation);
    } else {
      transport.await(
          transport.receiveCombining(rank - 1, slot, memory, 0, bytes, reduction), operation);
    }
  }

  private void end(Operation operation, long slot, MemorySegment memory, long bytes)
      throws Exception {
    if (rank >= 2 * pairs) {
      return;
    }
    if (isAway()) {
      transport.await(transport.receive(rank + 1, slot, memory, 0, bytes), operation);
    } else {
      transport.await(transport.send(rank - 1, slot, memory, 0, bytes), operation);
    }
  }

  /**
   * Returns the steps of an all-reduce of the ranks that take part, together with those in which
   * the others hand over their elements and get the result.
   *
   * @param size the number of all ranks
   * @param steps the steps of the ranks that take part
   */
  static List<Step> folded(int size, double bytes, List<Step> steps) {
    if (Integer.bitCount(size) == 1) {
      return steps;
    }
    List<Step> all = new ArrayList<>(Flow.reducingSteps(1, bytes));
    all.addAll(steps);
    all.addAll(Flow.steps(1, bytes));
    return all;
  }
}
