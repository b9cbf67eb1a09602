package dev.tutti.gloo.algorithm;

import dev.tutti.Tensor;
import dev.tutti.gloo.transport.Request;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.Operation;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Exchanges one message, even an empty one, between every two ranks (Gloo: {@code alltoall.cc} and
 * {@code alltoallv.cc}).
 *
 * <table>
 * <caption>Cost for N ranks and S bytes of each, in equal parts</caption>
 * <tr><th>steps</th><th>bytes sent by each rank</th></tr>
 * <tr><td>1</td><td>S·(N−1)/N</td></tr>
 * </table>
 */
public final class DirectAllToAll {
  private final Transport transport;
  private final @Nullable Request[] sends;
  private final @Nullable Request[] receives;

  /** Creates an instance for any number of operations, one at a time. */
  public DirectAllToAll(Transport transport) {
    this.transport = transport;
    this.sends = new @Nullable Request[transport.size()];
    this.receives = new @Nullable Request[transport.size()];
  }

  /**
   * Exchanges tensors.
   *
   * @param outputs the tensors to receive into, one from each rank, contiguous
   * @param inputs the tensors to send, one to each rank, contiguous
   */
  public void run(Operation operation, int tag, List<Tensor> outputs, List<Tensor> inputs)
      throws Exception {
    int rank = transport.rank();
    int size = transport.size();
    long slot = Slot.ALL_TO_ALL.of(tag);
    outputs.get(rank).copyFrom(inputs.get(rank));
    for (int i = 1; i < size; i++) {
      int to = (rank + i) % size;
      int from = (rank - i + size) % size;
      Tensor input = inputs.get(to);
      Tensor output = outputs.get(from);
      sends[i] = transport.send(to, slot, input.segment(), 0, input.byteSize());
      receives[i] = transport.receive(from, slot, output.segment(), 0, output.byteSize());
    }
    Flow.awaitAll(transport, operation, sends);
    Flow.awaitAll(transport, operation, receives);
    transport.flush();
  }
}
