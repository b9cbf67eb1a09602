package dev.tutti.gloo.algorithm;

import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.Request;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.spi.Operation;
import dev.tutti.spi.OperationPlan.Step;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Copies the root's bytes down a binomial tree, in one message for each edge (Gloo: {@code
 * broadcast.cc}).
 *
 * <table>
 * <caption>Cost for N ranks and S bytes</caption>
 * <tr><th>steps</th><th>bytes sent by the root</th><th>by all</th></tr>
 * <tr><td>⌈log₂ N⌉</td><td>S·⌈log₂ N⌉</td><td>S·(N−1)</td></tr>
 * </table>
 */
public final class BinomialBroadcast {
  private final Endpoint transport;
  private final @Nullable Request[] sends = new @Nullable Request[Integer.SIZE];

  /** Creates an instance for any number of operations, one at a time. */
  public BinomialBroadcast(Endpoint transport) {
    this.transport = transport;
  }

  /**
   * Sends the root's bytes to all ranks, or receives them.
   *
   * @param memory the bytes
   * @param root the rank whose bytes are sent
   */
  public void run(Operation operation, int tag, MemorySegment memory, long bytes, int root)
      throws Exception {
    int size = transport.size();
    int virtual = (transport.rank() - root + size) % size;
    int dimensions = Integer.SIZE - Integer.numberOfLeadingZeros(size - 1);
    int mask = (1 << dimensions) - 1;
    long slot = Slot.BROADCAST.of(tag);
    for (int i = 0; i < dimensions; i++) {
      mask ^= 1 << i;
      int virtualPeer = virtual ^ 1 << i;
      if ((virtual & mask) != 0 || virtualPeer >= size) {
        continue;
      }
      int peer = (virtualPeer + root) % size;
      if ((virtual & 1 << i) == 0) {
        sends[i] = transport.send(peer, slot, memory, 0, bytes);
      } else {
        transport.await(transport.receive(peer, slot, memory, 0, bytes), operation);
      }
    }
    Flow.awaitAll(transport, operation, sends);
    transport.flush();
  }

  /** Returns the steps, for {@code size} ranks. */
  static List<Step> steps(int size, double bytes) {
    List<Step> steps = new ArrayList<>();
    for (long distance = 1; distance < size; distance *= 2) {
      steps.add(Step.network((int) distance, 1, 1, bytes));
    }
    return steps;
  }
}
