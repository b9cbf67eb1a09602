package dev.tutti.gloo.algorithm;

import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.Request;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.spi.Operation;
import dev.tutti.spi.OperationPlan.Step;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * Gathers the parts of all ranks in messages of doubling size: few steps, for small parts between
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
  private final long[] starts;

  /**
   * Creates an instance for any number of operations, one at a time.
   *
   * @param transport connects the ranks, all of which are Tutti ranks
   */
  public BruckAllGather(Endpoint transport, Scratch scratch) {
    this.transport = transport;
    this.scratch = scratch;
    this.starts = new long[transport.size() + 1];
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
    long slot = Slot.ALL_GATHER.of(tag);
    // Here part i is that of rank (rank + i) % size.
    for (int i = 0; i < size; i++) {
      starts[i + 1] = starts[i] + parts.bytes((rank + i) % size);
    }
    MemorySegment rotated = scratch.atLeast(starts[size]);
    MemorySegment.copy(parts.memory(rank), parts.offset(rank), rotated, 0, parts.bytes(rank));
    for (int held = 1; held < size; held *= 2) {
      int more = Math.min(held, size - held);
      long length = starts[held + more] - starts[held];
      int from = (rank + held) % size;
      int to = (rank - held + size) % size;
      Request receive = transport.receive(from, slot, rotated, starts[held], length);
      Request send = transport.send(to, slot, rotated, 0, starts[more]);
      transport.await(receive, operation);
      transport.await(send, operation);
    }
    transport.flush();
    for (int i = 1; i < size; i++) {
      int part = (rank + i) % size;
      MemorySegment.copy(
          rotated, starts[i], parts.memory(part), parts.offset(part), parts.bytes(part));
    }
  }

  /** Returns the steps, for {@code size} ranks with a part of {@code part} bytes each. */
  static List<Step> steps(int size, double part) {
    List<Step> steps = new ArrayList<>();
    for (long held = 1; held < size; held *= 2) {
      steps.addAll(Flow.steps((int) held, Math.min(held, size - held) * part));
    }
    return steps;
  }
}
