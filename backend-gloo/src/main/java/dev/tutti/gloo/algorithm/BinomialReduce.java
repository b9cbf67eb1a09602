package dev.tutti.gloo.algorithm;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.Request;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.spi.Operation;
import dev.tutti.spi.OperationPlan.Step;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Reduces to one rank up a binomial tree: few steps, for small tensors between Tutti ranks. The
 * tensors of the other ranks are left with partial results.
 *
 * <table>
 * <caption>Cost for N ranks and S bytes</caption>
 * <tr><th>steps</th><th>bytes sent by each rank</th><th>bytes received by the root</th></tr>
 * <tr><td>⌈log₂ N⌉</td><td>S</td><td>S·⌈log₂ N⌉</td></tr>
 * </table>
 */
public final class BinomialReduce {
  private final Endpoint transport;
  private final Scratch scratch;
  private final Reduction reduction = new Reduction();
  private final @Nullable Request[] receives = new @Nullable Request[Integer.SIZE];

  /**
   * Creates an instance for any number of operations, one at a time.
   *
   * @param transport connects the ranks, all of which are Tutti ranks
   */
  public BinomialReduce(Endpoint transport, Scratch scratch) {
    this.transport = transport;
    this.scratch = scratch;
  }

  /**
   * Reduces into the root's tensor.
   *
   * @param op the operator, but not AVG
   * @param root the rank that gets the result
   */
  public void run(Operation operation, int tag, Tensor tensor, ReduceOp op, int root)
      throws Exception {
    Reduction.before(op, tensor);
    int size = transport.size();
    if (size > 1 && tensor.byteSize() > 0) {
      reduction.set(op, tensor);
      climb(operation, Slot.REDUCE.of(tag), tensor.segment(), tensor.byteSize(), root);
      transport.flush();
    }
  }

  private void climb(Operation operation, long slot, MemorySegment memory, long bytes, int root)
      throws Exception {
    int size = transport.size();
    int virtual = (transport.rank() - root + size) % size;
    int children = virtual == 0 ? Integer.SIZE - 1 : Integer.numberOfTrailingZeros(virtual);
    int count = 0;
    while (count < children && virtual + (1 << count) < size) {
      count++;
    }
    MemorySegment received = scratch.atLeast(count * bytes);
    for (int i = 0; i < count; i++) {
      int child = (virtual + (1 << i) + root) % size;
      receives[i] = transport.receive(child, slot, received, i * bytes, bytes);
    }
    for (int i = 0; i < count; i++) {
      Flow.await(transport, operation, receives, i);
      reduction.combine(memory, 0, received, i * bytes, bytes);
    }
    if (virtual != 0) {
      int parent = (virtual - Integer.lowestOneBit(virtual) + root) % size;
      transport.await(transport.send(parent, slot, memory, 0, bytes), operation);
    }
  }

  /** Returns the steps, for {@code size} ranks; the busiest one receives instead of sending. */
  static List<Step> steps(int size, double bytes) {
    return BinomialBroadcast.steps(size, bytes).stream().map(step -> step.reducing(bytes)).toList();
  }
}
