package dev.tutti.gloo.algorithm;

import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.Request;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Gathers parts of unequal size: each rank passes on around the ring, whole, the part it received
 * last (Gloo: {@code allgatherv.cc}).
 *
 * <table>
 * <caption>Cost for N ranks and parts of S bytes in all</caption>
 * <tr><th>steps</th><th>bytes sent by each rank</th></tr>
 * <tr><td>N - 1</td><td>less than S</td></tr>
 * </table>
 */
public final class UnevenRingAllGather {
  private final Endpoint transport;

  /** Creates an instance for any number of operations, one at a time. */
  public UnevenRingAllGather(Endpoint transport) {
    this.transport = transport;
  }

  /**
   * Gathers into memory that already holds this rank's part.
   *
   * @param memory the parts, in rank order, one after the other
   * @param bytes the size of each part in bytes
   */
  public void run(Operation operation, int tag, MemorySegment memory, long[] bytes)
      throws Exception {
    int size = transport.size();
    int rank = transport.rank();
    long[] offsets = new long[size + 1];
    for (int r = 0; r < size; r++) {
      offsets[r + 1] = offsets[r] + bytes[r];
    }
    if (offsets[size] == 0) {
      return;
    }
    long slot = Slot.ALL_GATHER.of(tag);
    for (int i = 0; i < size - 1; i++) {
      int out = (rank - i + size) % size;
      int in = (rank - i - 1 + size) % size;
      int from = (rank - 1 + size) % size;
      Request receive = transport.receive(from, slot, memory, offsets[in], bytes[in]);
      Request send = transport.send((rank + 1) % size, slot, memory, offsets[out], bytes[out]);
      transport.await(receive, operation);
      transport.await(send, operation);
    }
    transport.flush();
  }
}
