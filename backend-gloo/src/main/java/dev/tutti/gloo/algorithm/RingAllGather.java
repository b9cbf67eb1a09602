package dev.tutti.gloo.algorithm;

import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.Request;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.spi.Operation;
import dev.tutti.spi.OperationPlan.Step;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Gathers the parts of all ranks around a ring, each part in two halves (for equal parts, Gloo:
 * {@code allgather.cc}).
 *
 * <table>
 * <caption>Cost for N ranks and B bytes of each</caption>
 * <tr><th>steps</th><th>bytes sent by each rank</th></tr>
 * <tr><td>2(N−1) halves</td><td>B·(N−1), or all parts but one</td></tr>
 * </table>
 */
public final class RingAllGather {
  private static final int IN_FLIGHT = 2;

  private final Endpoint transport;
  private final @Nullable Request[] sends = new @Nullable Request[IN_FLIGHT];
  private final @Nullable Request[] receives = new @Nullable Request[IN_FLIGHT];

  /** Creates an instance for any number of operations, one at a time. */
  public RingAllGather(Endpoint transport) {
    this.transport = transport;
  }

  /**
   * Gathers into parts of which this rank's already holds its data.
   *
   * @param parts the parts, whose sizes are the same on all ranks
   */
  public void run(Operation operation, int tag, TensorParts parts) throws Exception {
    int size = transport.size();
    if (size == 1 || parts.longest() == 0) {
      return;
    }
    int rank = transport.rank();
    int to = (rank + 1) % size;
    int from = (rank - 1 + size) % size;
    long slot = Slot.ALL_GATHER.of(tag);
    int steps = 2 * (size - 1);
    for (int i = 0; i < steps + IN_FLIGHT; i++) {
      int request = i % IN_FLIGHT;
      if (i >= IN_FLIGHT) {
        Flow.await(transport, operation, sends, request);
        Flow.await(transport, operation, receives, request);
      }
      if (i < steps) {
        int block = (size + rank - i / 2) % size;
        int before = (block - 1 + size) % size;
        sends[request] =
            transport.send(
                to,
                slot,
                parts.memory(block),
                start(parts, block, request),
                length(parts, block, request));
        receives[request] =
            transport.receive(
                from,
                slot,
                parts.memory(before),
                start(parts, before, request),
                length(parts, before, request));
      }
    }
    transport.flush();
  }

  private static long start(TensorParts parts, int part, int half) {
    return parts.offset(part) + half * (parts.bytes(part) / 2);
  }

  private static long length(TensorParts parts, int part, int half) {
    return half == 0 ? parts.bytes(part) / 2 : parts.bytes(part) - parts.bytes(part) / 2;
  }

  /** Returns the steps, for {@code size} ranks with a part of {@code part} bytes each. */
  static List<Step> steps(int size, double part) {
    return List.of(Step.network(1, size - 1, IN_FLIGHT, part / IN_FLIGHT));
  }
}
