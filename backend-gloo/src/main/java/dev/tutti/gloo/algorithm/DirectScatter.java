package dev.tutti.gloo.algorithm;

import dev.tutti.Tensor;
import dev.tutti.gloo.transport.Request;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.Operation;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Hands each rank one tensor of the root in one message (Gloo: {@code scatter.cc}).
 *
 * <table>
 * <caption>Cost for N ranks and B bytes of each</caption>
 * <tr><th>steps</th><th>bytes sent by the root</th><th>bytes received by each rank</th></tr>
 * <tr><td>1</td><td>B·(N−1)</td><td>B</td></tr>
 * </table>
 */
public final class DirectScatter {
  private final Transport transport;
  private final @Nullable Request[] sends;

  /** Creates an instance for any number of operations, one at a time. */
  public DirectScatter(Transport transport) {
    this.transport = transport;
    this.sends = new @Nullable Request[transport.size()];
  }

  /**
   * Scatters the root's inputs.
   *
   * @param output receives this rank's part, contiguous
   * @param inputs one tensor for each rank, contiguous; empty except on the root
   * @param root the rank whose tensors are scattered
   */
  public void run(Operation operation, int tag, Tensor output, List<Tensor> inputs, int root)
      throws Exception {
    long slot = Slot.SCATTER.of(tag);
    if (transport.rank() != root) {
      Request receive = transport.receive(root, slot, output.segment(), 0, output.byteSize());
      transport.await(receive, operation);
    } else {
      for (int peer = 0; peer < transport.size(); peer++) {
        Tensor input = inputs.get(peer);
        if (peer == root) {
          output.copyFrom(input);
        } else {
          sends[peer] = transport.send(peer, slot, input.segment(), 0, input.byteSize());
        }
      }
      Flow.awaitAll(transport, operation, sends);
    }
    transport.flush();
  }
}
