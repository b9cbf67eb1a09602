package dev.tutti.gloo.algorithm;

import dev.tutti.Tensor;
import dev.tutti.gloo.transport.Request;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.Operation;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Gathers on one rank, with one message from each other rank (Gloo: {@code gather.cc}).
 *
 * <table>
 * <caption>Cost for N ranks and B bytes of each</caption>
 * <tr><th>steps</th><th>bytes sent by each rank</th><th>bytes received by the root</th></tr>
 * <tr><td>1</td><td>B</td><td>B·(N−1)</td></tr>
 * </table>
 */
public final class DirectGather {
  private final Transport transport;
  private final @Nullable Request[] receives;

  /** Creates an instance for any number of operations, one at a time. */
  public DirectGather(Transport transport) {
    this.transport = transport;
    this.receives = new @Nullable Request[transport.size()];
  }

  /**
   * Gathers the inputs of all ranks.
   *
   * @param outputs one tensor for each rank, contiguous; empty except on the root
   * @param input this rank's tensor, contiguous
   * @param root the rank that gathers
   */
  public void run(Operation operation, int tag, List<Tensor> outputs, Tensor input, int root)
      throws Exception {
    long slot = Slot.GATHER.of(tag);
    if (transport.rank() != root) {
      Request send = transport.send(root, slot, input.segment(), 0, input.byteSize());
      transport.await(send, operation);
    } else {
      for (int peer = 0; peer < transport.size(); peer++) {
        Tensor output = outputs.get(peer);
        if (peer == root) {
          output.copyFrom(input);
        } else {
          receives[peer] = transport.receive(peer, slot, output.segment(), 0, output.byteSize());
        }
      }
      Flow.awaitAll(transport, operation, receives);
    }
    transport.flush();
  }
}
