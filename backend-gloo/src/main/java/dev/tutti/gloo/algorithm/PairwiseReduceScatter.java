package dev.tutti.gloo.algorithm;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cpu.HostReducer;
import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.Request;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.spi.Operation;
import dev.tutti.spi.OperationPlan.Step;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Reduces one part for each rank, between Tutti ranks: every rank sends each other rank that rank's
 * part, and reduces what it receives. Gloo only has an all-reduce for this.
 *
 * <table>
 * <caption>Cost for N ranks and S bytes of each; with unequal parts, about</caption>
 * <tr><th>steps</th><th>bytes sent by each rank</th><th>bytes reduced by each rank</th></tr>
 * <tr><td>N−1, four posted ahead, for each MiB of a part</td><td>S·(N−1)/N</td><td>as many</td></tr>
 * </table>
 *
 * <p>The order of reduction is the same in each run: the ranks before this one, nearest first.
 */
public final class PairwiseReduceScatter {
  private static final int POSTED = 4;
  private static final long CHUNK = 1 << 20;

  private final Endpoint transport;
  private final Scratch scratch;
  private final Scratch scaled = new Scratch();
  private final Reduction reduction = new Reduction();
  private final @Nullable Request[] receives = new @Nullable Request[POSTED];

  /**
   * Creates an instance for any number of operations, one at a time.
   *
   * @param transport connects the ranks, all of which are Tutti ranks
   */
  public PairwiseReduceScatter(Endpoint transport, Scratch scratch) {
    this.transport = transport;
    this.scratch = scratch;
  }

  /**
   * Reduces each part onto its rank.
   *
   * @param output receives this rank's part of the result; contiguous, and not one of the inputs
   * @param inputs the parts, in rank order, contiguous; left unchanged
   */
  public void run(Operation operation, int tag, Tensor output, List<Tensor> inputs, ReduceOp op)
      throws Exception {
    List<Tensor> parts = op.kind() == ReduceOp.Kind.PREMUL_SUM ? scale(inputs, op) : inputs;
    long slot = Slot.REDUCE.of(tag);
    int size = transport.size();
    reduction.set(op, output);
    for (int i = 1; i < size; i++) {
      int to = (transport.rank() + i) % size;
      send(to, slot, parts.get(to));
    }
    output.copyFrom(parts.get(transport.rank()));
    // A mean is scaled where it is added up, so that the inputs need not be copied.
    boolean isMean = op.kind() == ReduceOp.Kind.AVG;
    double factor = isMean ? HostReducer.meanFactor(size) : 1;
    scale(output.segment(), 0, output.byteSize(), factor);
    receive(operation, slot, output.segment(), output.byteSize(), factor);
    transport.awaitSent(operation);
    transport.flush();
    if (isMean && size * factor != 1) {
      HostReducer.divide(output.dtype(), output.segment(), 0, output.numel(), size * factor);
    }
  }

  private void scale(MemorySegment memory, long offset, long bytes, double factor) {
    if (factor != 1) {
      reduction.scale(memory, offset, bytes, factor);
    }
  }

  /** Sends a part; an empty one as an empty message, so that its rank has the operation too. */
  private void send(int to, long slot, Tensor part) throws Exception {
    long offset = 0;
    do {
      long length = Math.min(CHUNK, part.byteSize() - offset);
      transport.sendDetached(to, slot, part.segment(), offset, length);
      offset += CHUNK;
    } while (offset < part.byteSize());
  }

  /*
   * Message k is chunk k / (N - 1) from the rank 1 + k % (N - 1) places before this one. Data
   * received ahead waits in separate memory, so that it is reduced in order.
   */
  private void receive(
      Operation operation, long slot, MemorySegment memory, long bytes, double factor)
      throws Exception {
    int others = transport.size() - 1;
    long messages = Math.max(1, Math.ceilDiv(bytes, CHUNK)) * others;
    long partBytes = Math.min(CHUNK, bytes);
    MemorySegment received = scratch.atLeast(partBytes * POSTED);
    long posted = 0;
    for (long done = 0; done < messages; done++) {
      for (; posted < messages && posted < done + POSTED; posted++) {
        int from = (int) (transport.rank() - 1 - posted % others + transport.size());
        long length = Math.min(CHUNK, bytes - posted / others * CHUNK);
        int request = (int) (posted % POSTED);
        receives[request] =
            transport.receive(from % transport.size(), slot, received, request * partBytes, length);
      }
      int request = (int) (done % POSTED);
      Flow.await(transport, operation, receives, request);
      long offset = done / others * CHUNK;
      long length = Math.min(CHUNK, bytes - offset);
      Flow.beforeWork(transport, length);
      scale(received, request * partBytes, length, factor);
      reduction.combine(memory, offset, received, request * partBytes, length);
    }
  }

  private List<Tensor> scale(List<Tensor> inputs, ReduceOp op) {
    long total = inputs.stream().mapToLong(Tensor::byteSize).sum();
    MemorySegment memory = scaled.atLeast(Math.max(1, total));
    long offset = 0;
    List<Tensor> parts = new ArrayList<>();
    for (Tensor input : inputs) {
      Tensor part =
          Tensor.wrap(memory.asSlice(offset, input.byteSize()), input.dtype(), input.numel());
      part.copyFrom(input.flatten());
      HostReducer.scale(part.dtype(), part.segment(), 0, part.numel(), op.factor());
      parts.add(part);
      offset += input.byteSize();
    }
    return parts;
  }

  /** Returns the steps, for {@code size} ranks with a part of {@code part} bytes each. */
  static List<Step> steps(int size, double part) {
    double messages = Math.max(1, Math.ceil(part / CHUNK)) * (size - 1);
    double inFlight = Math.min(POSTED, messages);
    double bytes = part * (size - 1) / messages;
    return List.of(
        Step.network(size / 2, messages / inFlight, inFlight, bytes).reducing(inFlight * bytes));
  }
}
