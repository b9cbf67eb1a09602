package dev.tutti.gloo.algorithm;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.Request;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.spi.Operation;
import dev.tutti.spi.OperationPlan.Step;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Reduces to all ranks around a ring: first each rank collects the sum of its own part, then the
 * parts travel around the ring (Gloo: {@code allreduce.cc}, ring).
 *
 * <table>
 * <caption>Cost for N ranks and S bytes</caption>
 * <tr><th>steps</th><th>bytes sent by each rank</th><th>bytes reduced by each rank</th></tr>
 * <tr><td>2(N−1) parts of two or more segments</td><td>2·S·(N−1)/N</td><td>S·(N−1)/N</td></tr>
 * </table>
 *
 * <p>Each part is reduced once, in ring order, and then copied: all ranks get bitwise identical
 * results.
 */
public final class RingAllReduce {
  /*
   * The steps of both phases are numbered consecutively. In each step a rank receives one segment
   * and sends one, all on one slot. Step i sends what step i - perRank received, and may do so as
   * soon as that has arrived. As segments are matched in order, any number of receives may be
   * posted ahead. Gloo has two steps in flight; the messages are the same for any number, but with
   * more receives posted ahead a step costs one message latency rather than three.
   *
   * A receive of the second phase may be posted while this rank is still sending the old content of
   * the same segment: its new content comes from ranks that have received the old one.
   */
  private static final int POSTED = 16;

  private final Endpoint transport;
  private final Reduction reduction = new Reduction();
  private final RingSegments segments = new RingSegments();
  private final @Nullable Request[] receives = new @Nullable Request[POSTED];

  /** Creates an instance for any number of operations, one at a time. */
  public RingAllReduce(Endpoint transport) {
    this.transport = transport;
  }

  /** Reduces in place. */
  public void run(Operation operation, int tag, Tensor tensor, ReduceOp op) throws Exception {
    Reduction.before(op, tensor);
    int size = transport.size();
    if (size > 1 && tensor.numel() > 0) {
      reduction.set(op, tensor);
      segments.cutForAllReduce(tensor.byteSize(), reduction.unitBytes(), size);
      exchange(operation, Slot.ALL_REDUCE.of(tag), tensor.segment());
    }
    Reduction.after(op, tensor, size);
  }

  private void exchange(Operation operation, long slot, MemorySegment memory) throws Exception {
    long phase = segments.count() - segments.perRank();
    long steps = 2 * phase;
    long posted = 0;
    long sent = 0;
    for (long done = 0; done < steps; done++) {
      while (posted < steps && posted < done + POSTED) {
        post(slot, memory, posted++, phase);
      }
      while (sent < steps && sent < done + segments.perRank()) {
        send(slot, memory, sent++, phase);
      }
      Flow.await(transport, operation, receives, (int) (done % POSTED));
    }
    while (sent < steps) {
      send(slot, memory, sent++, phase);
    }
    transport.awaitSent(operation);
    transport.flush();
  }

  private void post(long slot, MemorySegment memory, long step, long phase) {
    int rank = transport.rank();
    int from = (rank + 1) % transport.size();
    boolean reduces = step < phase;
    long index =
        reduces
            ? (rank + 2) * segments.perRank() + step
            : (rank + 1) * segments.perRank() + step - phase;
    long offset = segments.offset(index);
    long bytes = segments.length(offset);
    if (bytes > 0) {
      receives[(int) (step % POSTED)] =
          reduces
              ? transport.receiveCombining(from, slot, memory, offset, bytes, reduction)
              : transport.receive(from, slot, memory, offset, bytes);
    }
  }

  private void send(long slot, MemorySegment memory, long step, long phase) {
    int rank = transport.rank();
    int to = (rank - 1 + transport.size()) % transport.size();
    long index =
        step < phase
            ? (rank + 1) * segments.perRank() + step
            : rank * segments.perRank() + step - phase;
    long offset = segments.offset(index);
    long bytes = segments.length(offset);
    if (bytes > 0) {
      transport.sendDetached(to, slot, memory, offset, bytes);
    }
  }

  /** Returns the steps, for {@code size} ranks; the last segments may be empty. */
  static List<Step> steps(int size, long bytes, int elementBytes) {
    RingSegments segments = new RingSegments();
    segments.cutForAllReduce(bytes, elementBytes, size);
    double part = (double) bytes / size;
    double messages = part / segments.bytes();
    Step phase = Step.network(1, size - 1, messages, (double) segments.bytes());
    return List.of(phase.reducing(part), phase);
  }
}
