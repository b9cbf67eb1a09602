package dev.tutti.gloo.algorithm;

import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.Request;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.spi.Operation;
import dev.tutti.spi.OperationPlan.Step;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Copies the root's bytes from rank to rank in successive chunks, so that every rank sends each
 * byte once; for large tensors between Tutti ranks.
 *
 * <table>
 * <caption>Cost for N ranks and S bytes</caption>
 * <tr><th>steps</th><th>bytes sent by each rank but the last</th></tr>
 * <tr><td>N−2 and one for each 256 KiB</td><td>S</td></tr>
 * </table>
 */
public final class ChainBroadcast {
  private static final long CHUNK = 256 << 10;
  private static final int POSTED = 4;

  private final Endpoint transport;
  private final @Nullable Request[] receives = new @Nullable Request[POSTED];

  /**
   * Creates an instance for any number of operations, one at a time.
   *
   * @param transport connects the ranks, all of which are Tutti ranks
   */
  public ChainBroadcast(Endpoint transport) {
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
    int rank = transport.rank();
    int virtual = (rank - root + size) % size;
    int from = (rank - 1 + size) % size;
    int to = (rank + 1) % size;
    long slot = Slot.BROADCAST.of(tag);
    long posted = 0;
    for (long offset = 0; offset < bytes; offset += CHUNK) {
      long length = Math.min(CHUNK, bytes - offset);
      if (virtual != 0) {
        for (; posted < bytes && posted < offset + POSTED * CHUNK; posted += CHUNK) {
          receives[(int) (posted / CHUNK % POSTED)] =
              transport.receive(from, slot, memory, posted, Math.min(CHUNK, bytes - posted));
        }
        Flow.await(transport, operation, receives, (int) (offset / CHUNK % POSTED));
      }
      if (virtual != size - 1) {
        transport.sendDetached(to, slot, memory, offset, length);
      }
    }
    transport.awaitSent(operation);
    transport.flush();
  }

  /** Returns the steps, for {@code size} ranks. */
  static List<Step> steps(int size, long bytes) {
    long chunks = Math.ceilDiv(bytes, CHUNK);
    return List.of(
        Step.network(1, Math.max(0, size - 2), 1, (double) Math.min(CHUNK, bytes)),
        Step.network(1, 1, (double) chunks, (double) bytes / Math.max(1, chunks)));
  }
}
