package dev.tutti.gloo.backend;

import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gloo.algorithm.Algorithm;
import dev.tutti.gloo.algorithm.AlgorithmTable;
import dev.tutti.gloo.algorithm.DirectAllToAll;
import dev.tutti.gloo.algorithm.DirectGather;
import dev.tutti.gloo.algorithm.DirectScatter;
import dev.tutti.gloo.algorithm.RingAllGather;
import dev.tutti.gloo.algorithm.Scratch;
import dev.tutti.gloo.algorithm.SocketAlgorithms;
import dev.tutti.gloo.algorithm.SparseAllReduce;
import dev.tutti.gloo.algorithm.SteppedMean;
import dev.tutti.gloo.algorithm.UnevenRingAllGather;
import dev.tutti.gloo.transport.RequestedAlgorithm;
import dev.tutti.gloo.transport.Signature;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Runs collectives over sockets: between Tutti ranks with the algorithm that suits the size, and
 * with PyTorch ranks as PyTorch's {@code ProcessGroupGloo} does, message for message.
 */
public class SocketBackend extends GlooBackend {
  static final String DIRECT_PATH = "gloo/sockets/direct";

  private final Transport transport;
  private final AlgorithmTable table;
  private final boolean asPytorch;
  private final SocketAlgorithms algorithms;
  private final RingAllGather sparseAllGather;
  private final UnevenRingAllGather unevenAllGather;
  private final SparseAllReduce sparseAllReduce;
  private final DirectGather gather;
  private final DirectScatter scatter;
  private final DirectAllToAll allToAll;
  private final Scratch inputCopy = new Scratch();
  private final SteppedMean mean;

  /**
   * Creates an instance for any number of operations.
   *
   * @param wire connects all ranks, which are all Tutti ranks
   * @param table the table of algorithms, the same on all ranks
   */
  public SocketBackend(Wire wire, AlgorithmTable table) {
    this(wire, table, false);
  }

  private SocketBackend(Wire wire, AlgorithmTable table, boolean asPytorch) {
    super(wire);
    this.transport = wire.transport();
    this.table = table;
    this.asPytorch = asPytorch;
    this.algorithms = new SocketAlgorithms(transport, table, new Scratch());
    this.sparseAllGather = new RingAllGather(transport);
    this.unevenAllGather = new UnevenRingAllGather(transport);
    this.sparseAllReduce = new SparseAllReduce(transport.rank(), transport.size());
    this.gather = new DirectGather(transport);
    this.scatter = new DirectScatter(transport);
    this.allToAll = new DirectAllToAll(transport);
    this.mean = new SteppedMean(transport.size());
  }

  /** Creates a backend for a group with PyTorch ranks. */
  public static SocketBackend withPytorch(Wire wire) {
    return new SocketBackend(wire, AlgorithmTable.PYTORCH, true);
  }

  /**
   * Copies a rank's input to its part of the output, unless it is already there.
   *
   * @return the output's memory
   */
  protected final MemorySegment fillOwn(Tensor output, Tensor input) {
    MemorySegment memory = output.segment();
    long bytes = input.byteSize();
    MemorySegment.copy(input.segment(), 0, memory, transport.rank() * bytes, bytes);
    return memory;
  }

  @Override
  protected void allReduce(
      Operation op, Tensor tensor, ReduceOp reduceOp, RequestedAlgorithm algorithm)
      throws Exception {
    int tag = next(Signature.ofAllReduce(tensor, reduceOp.kind(), algorithm));
    Optional<Algorithm> asked = Algorithm.of(algorithm);
    boolean isMean = isSteppedMean(reduceOp);
    Tensor sums = isMean ? mean.summands(tensor) : tensor;
    ReduceOp sum = isMean ? mean.sum(tensor.dtype()) : reduceOp;
    if (asked.isEmpty()) {
      algorithms.allReduce(op, tag, sums, sum);
    } else {
      algorithms.allReduce(op, tag, sums, sum, asked.get());
    }
    if (isMean) {
      mean.finish(sums, tensor);
    }
  }

  /** Tells whether an operator is AVG and may be computed differently than PyTorch does. */
  private boolean isSteppedMean(ReduceOp reduceOp) {
    return reduceOp.kind() == ReduceOp.Kind.AVG && !asPytorch;
  }

  /** Returns what computes means between Tutti ranks. */
  protected final SteppedMean mean() {
    return mean;
  }

  @Override
  protected @Nullable String reason(
      RequestedAlgorithm algorithm, Tensor tensor, ReduceOp reduceOp) {
    if (asPytorch) {
      return algorithm == RequestedAlgorithm.RING
          ? null
          : "the group has PyTorch ranks, which support only ring";
    }
    return Algorithm.of(algorithm).isPresent()
        ? null
        : "the algorithms over sockets are ring, recursive-doubling, halving-doubling and"
            + " pipelined-halving-doubling";
  }

  @Override
  protected final Tensor sumSparse(Operation op, Tensor tensor) throws Exception {
    int tag = next(Signature.of(OpType.ALL_REDUCE_SPARSE, tensor.dtype(), ReduceOp.Kind.SUM, 0, 0));
    op.took(Algorithm.RING.path());
    return sparseAllReduce.run(
        op,
        tensor,
        asPytorch,
        new SparseAllReduce.Exchange() {
          @Override
          public void gather(MemorySegment memory, long bytes) throws Exception {
            sparseAllGather.run(op, tag, memory, bytes);
          }

          @Override
          public void gatherUneven(MemorySegment memory, long[] bytes) throws Exception {
            unevenAllGather.run(op, tag, memory, bytes);
          }
        });
  }

  @Override
  public void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) throws Exception {
    int tag =
        next(Signature.of(OpType.REDUCE, tensor.dtype(), reduceOp.kind(), root, tensor.byteSize()));
    if (!isSteppedMean(reduceOp)) {
      algorithms.reduce(op, tag, tensor, reduceOp, root);
      return;
    }
    Tensor sums = mean.summands(tensor);
    algorithms.reduce(op, tag, sums, mean.sum(tensor.dtype()), root);
    if (transport.rank() == root) {
      mean.finish(sums, tensor);
    }
  }

  @Override
  public void broadcast(Operation op, Tensor tensor, int root) throws Exception {
    int tag = next(Signature.of(OpType.BROADCAST, tensor.dtype(), root, tensor.byteSize()));
    algorithms.broadcast(op, tag, tensor.segment(), tensor.byteSize(), root);
  }

  @Override
  public void allGatherInto(Operation op, Tensor output, Tensor input) throws Exception {
    long bytes = input.byteSize();
    int tag = next(Signature.of(OpType.ALL_GATHER, input.dtype(), 0, bytes));
    algorithms.allGather(op, tag, fillOwn(output, input), bytes);
  }

  @Override
  public void gather(Operation op, List<Tensor> outputs, Tensor input, int root) throws Exception {
    int tag = next(Signature.of(OpType.GATHER, input.dtype(), root, input.byteSize()));
    op.took(DIRECT_PATH);
    gather.run(op, tag, outputs, input, root);
  }

  @Override
  public void scatter(Operation op, Tensor output, List<Tensor> inputs, int root) throws Exception {
    int tag = next(Signature.of(OpType.SCATTER, output.dtype(), root, output.byteSize()));
    op.took(DIRECT_PATH);
    scatter.run(op, tag, output, inputs, root);
  }

  @Override
  public void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) throws Exception {
    int tag = next(Signature.of(OpType.ALL_TO_ALL, inputs.get(0).dtype(), 0, 0));
    op.took(DIRECT_PATH);
    allToAll.run(op, tag, outputs, inputs);
  }

  @Override
  public void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    if (!isByAllReduce(output.byteSize() * transport.size())) {
      pairwise(op, output, inputs, reduceOp);
      return;
    }
    // As in PyTorch, one all-reduce for each rank's part.
    for (int rank = 0; rank < inputs.size(); rank++) {
      Tensor reduced = allReduceCopy(op, inputs.get(rank), reduceOp);
      if (rank == transport.rank()) {
        output.copyFrom(reduced);
      }
    }
  }

  @Override
  public void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp)
      throws Exception {
    long numel = output.numel();
    if (isByAllReduce(input.byteSize())) {
      // As in PyTorch, one all-reduce of the whole.
      Tensor reduced = allReduceCopy(op, input, reduceOp);
      output.copyFrom(reduced.narrow(0, transport.rank() * numel, numel));
      return;
    }
    Tensor flat = input.flatten();
    List<Tensor> parts = new ArrayList<>();
    for (int rank = 0; rank < transport.size(); rank++) {
      parts.add(flat.narrow(0, rank * numel, numel));
    }
    pairwise(op, output, parts, reduceOp);
  }

  private boolean isByAllReduce(long bytes) {
    return table.choose(OpType.REDUCE_SCATTER, bytes, transport.size()) == Algorithm.ALL_REDUCE;
  }

  private void pairwise(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    int tag =
        next(
            Signature.of(
                OpType.REDUCE_SCATTER, output.dtype(), reduceOp.kind(), 0, output.byteSize()));
    if (isSteppedMean(reduceOp) && output.dtype().isInteger()) {
      Tensor sums = mean.sums(output);
      algorithms.reduceScatter(op, tag, sums, mean.summands(inputs), mean.sum(output.dtype()));
      mean.finish(sums, output);
    } else {
      algorithms.reduceScatter(op, tag, output, inputs, reduceOp);
    }
  }

  private Tensor allReduceCopy(Operation op, Tensor input, ReduceOp reduceOp) throws Exception {
    MemorySegment memory = inputCopy.atLeast(Math.max(1, input.byteSize()));
    Tensor copy = Tensor.wrap(memory, input.dtype(), input.numel());
    copy.copyFrom(input);
    int tag = next(Signature.ofAllReduce(copy, reduceOp.kind(), RequestedAlgorithm.AUTO));
    if (isSteppedMean(reduceOp)) {
      Tensor sums = mean.summands(copy);
      algorithms.allReduce(op, tag, sums, mean.sum(copy.dtype()), Algorithm.RING);
      mean.finish(sums, copy);
    } else {
      algorithms.allReduce(op, tag, copy, reduceOp, Algorithm.RING);
    }
    return copy;
  }

  @Override
  public void barrier(Operation op) throws Exception {
    int tag = next(Signature.of(OpType.BARRIER));
    algorithms.barrier(op, tag);
  }

  @Override
  public String toString() {
    return "sockets";
  }
}
