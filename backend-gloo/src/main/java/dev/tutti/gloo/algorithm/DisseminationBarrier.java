package dev.tutti.gloo.algorithm;

import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.Request;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.spi.Operation;
import dev.tutti.spi.OperationPlan.Step;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Waits for all ranks, using empty messages over growing distances (Gloo: {@code barrier.cc}).
 *
 * <table>
 * <caption>Cost for N ranks</caption>
 * <tr><th>steps</th><th>messages sent by each rank</th></tr>
 * <tr><td>⌈log₂ N⌉</td><td>⌈log₂ N⌉</td></tr>
 * </table>
 */
public final class DisseminationBarrier {
  /** The path of an operation that uses this barrier. */
  static final String PATH = "gloo/sockets/dissemination";

  private final Endpoint transport;

  /** Creates an instance for any number of operations, one at a time. */
  public DisseminationBarrier(Endpoint transport) {
    this.transport = transport;
  }

  /** Returns when all ranks have called it. */
  public void run(Operation operation, int tag) throws Exception {
    int rank = transport.rank();
    int size = transport.size();
    long slot = Slot.BARRIER.of(tag);
    for (int distance = 1; distance < size; distance <<= 1) {
      int from = (rank - distance + size) % size;
      int to = (rank + distance) % size;
      Request receive = transport.receive(from, slot, MemorySegment.NULL, 0, 0);
      Request send = transport.send(to, slot, MemorySegment.NULL, 0, 0);
      transport.await(receive, operation);
      transport.await(send, operation);
    }
    transport.flush();
  }

  /** Returns the steps, for {@code size} ranks. */
  static List<Step> steps(int size) {
    return BinomialBroadcast.steps(size, 0);
  }
}
