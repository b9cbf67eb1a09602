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
 * Reduces to one rank: in a ring each rank collects the sum of its own part, then the root fetches
 * the parts (Gloo: {@code reduce.cc}). The tensors of the other ranks are left with partial sums.
 *
 * <table>
 * <caption>Cost for N ranks and S bytes</caption>
 * <tr><th>steps</th><th>bytes sent by each rank</th></tr>
 * <tr><td>2·N−2 segments or more, then one part to the root</td>
 *     <td>S·(N−1)/N or more, then S/N</td></tr>
 * </table>
 */
public final class RingReduce {
  private static final int IN_FLIGHT = 2;

  private final Endpoint transport;
  private final Scratch scratch;
  private final Reduction reduction = new Reduction();
  private final RingSegments segments = new RingSegments();
  private final @Nullable Request[] sends = new @Nullable Request[IN_FLIGHT];
  private final @Nullable Request[] receives = new @Nullable Request[IN_FLIGHT];
  private final @Nullable Request[] parts;

  /** Creates an instance for any number of operations, one at a time. */
  public RingReduce(Endpoint transport, Scratch scratch) {
    this.transport = transport;
    this.scratch = scratch;
    this.parts = new @Nullable Request[transport.size()];
  }

  /**
   * Reduces into the root's tensor.
   *
   * @param root the rank that gets the result
   */
  public void run(Operation operation, int tag, Tensor tensor, ReduceOp op, int root)
      throws Exception {
    Reduction.before(op, tensor);
    int size = transport.size();
    if (size > 1 && tensor.numel() > 0) {
      reduction.set(op, tensor);
      segments.cutForReduce(tensor.byteSize(), reduction.unitBytes(), size);
      long slot = Slot.REDUCE.of(tag);
      scatter(operation, slot, tensor.segment());
      collect(operation, slot, tensor.segment(), root);
      transport.flush();
    }
    if (transport.rank() == root) {
      Reduction.after(op, tensor, size);
    }
  }

  /*
   * Runs for count - 2 steps, although count - perRank would suffice: with more than two segments
   * per rank, the last steps carry data that nobody needs, but peers send and expect it.
   */
  private void scatter(Operation operation, long slot, MemorySegment memory) throws Exception {
    int rank = transport.rank();
    int from = (rank + 1) % transport.size();
    int to = (rank - 1 + transport.size()) % transport.size();
    long first = (rank + 1) * segments.perRank();
    long steps = segments.count() - IN_FLIGHT;
    MemorySegment received = scratch.atLeast(segments.bytes() * IN_FLIGHT);
    for (long i = 0; i < segments.count(); i++) {
      int request = (int) (i % IN_FLIGHT);
      if (i >= IN_FLIGHT) {
        long offset = segments.offset(first + segments.perRank() + i - IN_FLIGHT);
        finish(operation, memory, received, offset, request);
      }
      if (i < steps) {
        long inBytes = segments.length(segments.offset(first + segments.perRank() + i));
        if (inBytes > 0) {
          receives[request] =
              transport.receive(from, slot, received, request * segments.bytes(), inBytes);
        }
        long out = segments.offset(first + i);
        long outBytes = segments.length(out);
        if (outBytes > 0) {
          sends[request] = transport.send(to, slot, memory, out, outBytes);
        }
      }
    }
  }

  private void finish(
      Operation operation, MemorySegment memory, MemorySegment received, long offset, int request)
      throws Exception {
    Request receive = receives[request];
    if (receive != null) {
      receives[request] = null;
      transport.await(receive, operation);
      long bytes = segments.length(offset);
      Flow.beforeWork(transport, bytes);
      reduction.combine(memory, offset, received, request * segments.bytes(), bytes);
    }
    Flow.await(transport, operation, sends, request);
  }

  private void collect(Operation operation, long slot, MemorySegment memory, int root)
      throws Exception {
    int rank = transport.rank();
    long part = segments.perRank() * segments.bytes();
    for (int peer = 0; peer < transport.size(); peer++) {
      long offset = peer * part;
      long bytes = Math.min(part, segments.total() - offset);
      if (bytes <= 0) {
        break;
      }
      if (rank == root && peer != root) {
        parts[peer] = transport.receive(peer, slot, memory, offset, bytes);
      } else if (rank == peer && rank != root) {
        parts[peer] = transport.send(root, slot, memory, offset, bytes);
      }
    }
    Flow.awaitAll(transport, operation, parts);
  }

  /** Returns the steps, for {@code size} ranks; the last segments may be empty. */
  static List<Step> steps(int size, long bytes, int elementBytes) {
    RingSegments segments = new RingSegments();
    segments.cutForReduce(bytes, elementBytes, size);
    double filled = (double) bytes / (segments.bytes() * segments.count());
    double rounds = (segments.count() - IN_FLIGHT) * filled / IN_FLIGHT;
    double sent = IN_FLIGHT * segments.bytes();
    return List.of(
        Step.network(1, rounds, IN_FLIGHT, (double) segments.bytes()).reducing(sent),
        Step.network(size / 2, 1, size - 1, (double) bytes / size));
  }
}
