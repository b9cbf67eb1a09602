package dev.tutti.gloo.algorithm;

import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.Request;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Gathers equal parts of all ranks in messages of doubling size: few steps, for small parts between
 * Tutti ranks (Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient Algorithms for All-to-All
 * Communications in Multiport Message-Passing Systems, 1997).
 *
 * <table>
 * <caption>Cost for N ranks and B bytes of each</caption>
 * <tr><th>steps</th><th>bytes sent by each rank</th></tr>
 * <tr><td>⌈log₂ N⌉</td><td>B·(N−1)</td></tr>
 * </table>
 */
public final class BruckAllGather {
  private final Endpoint transport;
  private final Scratch scratch;

  /**
   * Creates an instance for any number of operations, one at a time.
   *
   * @param transport connects the ranks, all of which are Tutti ranks
   * @param scratch memory shared with other algorithms
   */
  public BruckAllGather(Endpoint transport, Scratch scratch) {
    this.transport = transport;
    this.scratch = scratch;
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
    long slot = Slot.ALL_GATHER.of(tag);
    // Here part i is that of rank (rank + i) % size.
    MemorySegment parts = scratch.atLeast(size * bytes);
    MemorySegment.copy(memory, rank * bytes, parts, 0, bytes);
    for (int held = 1; held < size; held *= 2) {
      long length = Math.min(held, size - held) * bytes;
      int from = (rank + held) % size;
      int to = (rank - held + size) % size;
      Request receive = transport.receive(from, slot, parts, held * bytes, length);
      Request send = transport.send(to, slot, parts, 0, length);
      transport.await(receive, operation);
      transport.await(send, operation);
    }
    transport.flush();
    long tail = (size - rank) * bytes;
    MemorySegment.copy(parts, 0, memory, rank * bytes, tail);
    MemorySegment.copy(parts, tail, memory, 0, rank * bytes);
  }
}
