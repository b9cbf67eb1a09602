package dev.tutti.gloo.algorithm;

import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.Request;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Gathers equal parts of all ranks around a ring, each part in two halves (Gloo: {@code
 * allgather.cc}).
 *
 * <table>
 * <caption>Cost for N ranks and B bytes of each</caption>
 * <tr><th>steps</th><th>bytes sent by each rank</th></tr>
 * <tr><td>2(N−1) halves</td><td>B·(N−1)</td></tr>
 * </table>
 */
public final class RingAllGather {
  private static final int IN_FLIGHT = 2;

  private final Endpoint transport;
  private final @Nullable Request[] sends = new @Nullable Request[IN_FLIGHT];
  private final @Nullable Request[] receives = new @Nullable Request[IN_FLIGHT];

  /**
   * Creates an instance for any number of operations, one at a time.
   *
   * @param transport connects the ranks
   */
  public RingAllGather(Endpoint transport) {
    this.transport = transport;
  }

  /**
   * Gathers into memory that already holds this rank's part.
   *
   * @param operation carries the deadline
   * @param tag the number of the collective
   * @param memory the parts, in rank order
   * @param bytes the size of one part in bytes
   * @throws Exception if a wait fails
   */
  public void run(Operation operation, int tag, MemorySegment memory, long bytes) throws Exception {
    int size = transport.size();
    if (size == 1 || bytes == 0) {
      return;
    }
    int rank = transport.rank();
    int to = (rank + 1) % size;
    int from = (rank - 1 + size) % size;
    long slot = Slot.ALL_GATHER.of(tag);
    long half = bytes / 2;
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
        long start = request == 0 ? 0 : half;
        long length = request == 0 ? half : bytes - half;
        sends[request] = transport.send(to, slot, memory, block * bytes + start, length);
        receives[request] = transport.receive(from, slot, memory, before * bytes + start, length);
      }
    }
    transport.flush();
  }
}
