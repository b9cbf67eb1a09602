package dev.tutti.gloo.algorithm;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gloo.transport.Request;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Reduces to all ranks around a ring: first each rank collects the sum of its own part, then the
 * parts go round (Gloo: {@code allreduce.cc}, ring).
 *
 * <table>
 * <caption>Cost for N ranks and S bytes</caption>
 * <tr><th>steps</th><th>bytes sent by each rank</th><th>bytes reduced by each rank</th></tr>
 * <tr><td>2(N−1) parts of two or more segments</td><td>2·S·(N−1)/N</td><td>S·(N−1)/N</td></tr>
 * </table>
 *
 * <p>Each part is reduced once, in the order of the ring, and copied: all ranks hold the same bits.
 */
public final class RingAllReduce {
  /** Segments under way at the same time, in each direction. */
  private static final int IN_FLIGHT = 2;

  private final Transport transport;
  private final Scratch scratch;
  private final Reduction reduction = new Reduction();
  private final @Nullable Request[] sends = new @Nullable Request[IN_FLIGHT];
  private final @Nullable Request[] receives = new @Nullable Request[IN_FLIGHT];

  /**
   * Prepares for any number of operations, one at a time.
   *
   * @param transport connects the ranks
   * @param scratch memory shared with other algorithms
   */
  public RingAllReduce(Transport transport, Scratch scratch) {
    this.transport = transport;
    this.scratch = scratch;
  }

  /**
   * Reduces in place.
   *
   * @param operation carries the deadline
   * @param tag number of the collective
   * @param tensor contiguous
   * @param op the operator
   * @throws Exception if a wait ended without success
   */
  public void run(Operation operation, int tag, Tensor tensor, ReduceOp op) throws Exception {
    Reduction.before(op, tensor);
    int size = transport.size();
    if (size > 1 && tensor.numel() > 0) {
      reduction.set(op, tensor);
      MemorySegment memory = tensor.segment();
      Segments segments = Segments.forAllReduce(tensor.byteSize(), reduction.elementBytes(), size);
      long slot = Slot.ALL_REDUCE.of(tag);
      pass(operation, slot, memory, segments, true);
      pass(operation, slot, memory, segments, false);
      transport.flush();
    }
    Reduction.after(op, tensor, size);
  }

  private void pass(
      Operation operation, long slot, MemorySegment memory, Segments segments, boolean reduces)
      throws Exception {
    int rank = transport.rank();
    int from = (rank + 1) % transport.size();
    int to = (rank - 1 + transport.size()) % transport.size();
    long first = (rank + (reduces ? 1 : 0)) * segments.perRank();
    long steps = segments.count() - segments.perRank();
    MemorySegment target = reduces ? scratch.atLeast(segments.bytes() * IN_FLIGHT) : memory;
    for (long i = 0; i < steps + IN_FLIGHT; i++) {
      int lane = (int) (i % IN_FLIGHT);
      if (i >= IN_FLIGHT) {
        long offset = segments.offset(first + segments.perRank() + i - IN_FLIGHT);
        finish(operation, memory, segments, reduces ? target : null, offset, lane);
      }
      if (i < steps) {
        long in = segments.offset(first + segments.perRank() + i);
        long inBytes = segments.length(in);
        if (inBytes > 0) {
          long at = reduces ? lane * segments.bytes() : in;
          receives[lane] = transport.receive(from, slot, target, at, inBytes);
        }
        long out = segments.offset(first + i);
        long outBytes = segments.length(out);
        if (outBytes > 0) {
          sends[lane] = transport.send(to, slot, memory, out, outBytes);
        }
      }
    }
  }

  private void finish(
      Operation operation,
      MemorySegment memory,
      Segments segments,
      @Nullable MemorySegment received,
      long offset,
      int lane)
      throws Exception {
    Request receive = receives[lane];
    if (receive != null) {
      receives[lane] = null;
      transport.await(receive, operation);
      if (received != null) {
        long bytes = segments.length(offset);
        Flow.beforeWork(transport, bytes);
        reduction.reduce(memory, offset, received, lane * segments.bytes(), bytes);
      }
    }
    Request send = sends[lane];
    if (send != null) {
      sends[lane] = null;
      transport.await(send, operation);
    }
  }
}
