package dev.tutti.gloo.algorithm;

import dev.tutti.gloo.transport.Request;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLateException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * Waits for all ranks through rank 0, which can name the missing ones (c10d: {@code
 * ProcessGroupGloo::monitoredBarrier}).
 *
 * <table>
 * <caption>Cost for N ranks</caption>
 * <tr><th>steps</th><th>messages of 4 bytes</th></tr>
 * <tr><td>2</td><td>2(N−1), all with rank 0</td></tr>
 * </table>
 *
 * <p>To PyTorch ranks the messages are plain sends with the collective's number as the tag, as in
 * PyTorch; between Tutti ranks they have slots of their own and cannot collide with a user's
 * messages.
 */
public final class MonitoredBarrier {
  private static final long BYTES = 4;

  private final Transport transport;
  private final MemorySegment memory;
  private final @Nullable Request[] requests;

  /** Creates an instance for any number of operations, one at a time. */
  public MonitoredBarrier(Transport transport) {
    this.transport = transport;
    this.memory = Arena.ofAuto().allocate(BYTES * transport.size(), BYTES);
    this.requests = new @Nullable Request[transport.size()];
  }

  /**
   * Returns when all ranks have called it.
   *
   * @param tag the number of the collective; this number and the next are used
   * @param waitAllRanks whether rank 0 collects all missing ranks before it fails
   * @throws PeerLateException on rank 0, naming the missing ranks
   * @throws Exception if another wait fails
   */
  public void run(Operation operation, int tag, boolean waitAllRanks) throws Exception {
    int rank = transport.rank();
    memory.setAtIndex(ValueLayout.JAVA_INT_UNALIGNED, rank, rank);
    if (rank != 0) {
      Request send = transport.send(0, slot(0, tag), memory, rank * BYTES, BYTES);
      Request receive = transport.receive(0, slot(0, tag + 1), memory, 0, BYTES);
      transport.await(send, operation);
      transport.await(receive, operation);
      return;
    }
    for (int peer = 1; peer < transport.size(); peer++) {
      requests[peer] = transport.receive(peer, slot(peer, tag), memory, peer * BYTES, BYTES);
    }
    collect(operation, waitAllRanks);
    for (int peer = 1; peer < transport.size(); peer++) {
      requests[peer] = transport.send(peer, slot(peer, tag + 1), memory, 0, BYTES);
    }
    Flow.awaitAll(transport, operation, requests);
    transport.flush();
  }

  private void collect(Operation operation, boolean waitAllRanks) throws Exception {
    List<Integer> missing = new ArrayList<>();
    for (int peer = 1; peer < transport.size() && (waitAllRanks || missing.isEmpty()); peer++) {
      try {
        Flow.await(transport, operation, requests, peer);
      } catch (TimeoutException e) {
        missing.add(peer);
      }
    }
    if (!missing.isEmpty()) {
      throw new PeerLateException(missing, "did not reach the monitored barrier in time");
    }
  }

  private long slot(int peer, int tag) {
    return transport.isTutti(peer) ? Slot.CONTROL.of(tag) : Integer.toUnsignedLong(tag);
  }
}
