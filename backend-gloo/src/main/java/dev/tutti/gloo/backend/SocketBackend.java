package dev.tutti.gloo.backend;

import dev.tutti.Capabilities.Feature;
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
import dev.tutti.gloo.algorithm.TensorParts;
import dev.tutti.gloo.algorithm.UnevenRingAllGather;
import dev.tutti.gloo.transport.RequestedAlgorithm;
import dev.tutti.gloo.transport.Signature;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Runs collectives over sockets: between Tutti ranks with the algorithm that suits the size, and
 * with PyTorch ranks as PyTorch's {@code ProcessGroupGloo} does, message for message.
 */
public class SocketBackend extends GlooBackend {
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
  private final TensorParts parts;
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
    this.parts = new TensorParts(transport.size());
  }

  /** Creates a backend for a group with PyTorch ranks. */
  public static SocketBackend withPytorch(Wire wire) {
    return new SocketBackend(wire, AlgorithmTable.PYTORCH, true);
  }

  @Override
  public Map<Feature, String> missingFeatures() {
    Map<Feature, String> missing = super.missingFeatures();
    if (!asPytorch) {
      return missing;
    }
    Map<Feature, String> all = new EnumMap<>(missing);
    all.put(Feature.UNEVEN_PARTS, "PyTorch's Gloo takes only parts of equal size");
    return all;
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

  /** Returns whether an operator is AVG and may be computed differently than PyTorch does. */
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
            sparseAllGather.run(op, tag, parts.ofEqual(memory, bytes));
            parts.forget();
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
  public final void allGatherInto(Operation op, Tensor output, Tensor input) throws Exception {
    gather(op, parts.ofEqual(output), input);
  }

  @Override
  public final void allGather(Operation op, List<Tensor> outputs, Tensor input) throws Exception {
    gather(op, parts.of(outputs), input);
  }

  @Override
  public final void allGatherInto(Operation op, Tensor output, Tensor input, long[] outputSplits)
      throws Exception {
    gather(op, parts.of(output, outputSplits), input);
  }

  private void gather(Operation op, TensorParts outputs, Tensor input) throws Exception {
    try {
      long ofEmpty = Signature.of(OpType.ALL_GATHER, input.dtype(), 0, 0);
      outputs.fill(transport.rank(), input);
      gather(op, Signature.ofParts(ofEmpty, outputs.sizes()), outputs);
    } finally {
      outputs.forget();
    }
  }

  /** Gathers into parts of which this rank's already holds its data. */
  protected void gather(Operation op, long signature, TensorParts outputs) throws Exception {
    algorithms.allGather(op, next(signature), outputs);
  }

  @Override
  public void gather(Operation op, List<Tensor> outputs, Tensor input, int root) throws Exception {
    int tag = next(Signature.of(OpType.GATHER, input.dtype(), root, input.byteSize()));
    op.took(Wire.DIRECT_PATH);
    gather.run(op, tag, outputs, input, root);
  }

  @Override
  public void scatter(Operation op, Tensor output, List<Tensor> inputs, int root) throws Exception {
    int tag = next(Signature.of(OpType.SCATTER, output.dtype(), root, output.byteSize()));
    op.took(Wire.DIRECT_PATH);
    scatter.run(op, tag, output, inputs, root);
  }

  @Override
  public void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) throws Exception {
    int tag = next(Signature.of(OpType.ALL_TO_ALL, inputs.get(0).dtype(), 0, 0));
    op.took(Wire.DIRECT_PATH);
    allToAll.run(op, tag, outputs, inputs);
  }

  @Override
  public void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    if (!isByAllReduce(inputs.stream().mapToLong(Tensor::byteSize).sum())) {
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
    List<Tensor> inputs = new ArrayList<>();
    for (int rank = 0; rank < transport.size(); rank++) {
      inputs.add(flat.narrow(0, rank * numel, numel));
    }
    pairwise(op, output, inputs, reduceOp);
  }

  private boolean isByAllReduce(long bytes) {
    return table.choose(OpType.REDUCE_SCATTER, bytes, transport.size()) == Algorithm.ALL_REDUCE;
  }

  private void pairwise(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    int tag = next(signature(inputs, reduceOp));
    if (isSteppedMean(reduceOp) && output.dtype().isInteger()) {
      Tensor sums = mean.sums(output);
      algorithms.reduceScatter(op, tag, sums, mean.summands(inputs), mean.sum(output.dtype()));
      mean.finish(sums, output);
    } else {
      algorithms.reduceScatter(op, tag, output, inputs, reduceOp);
    }
  }

  /** Signs a reduce-scatter. */
  protected static long signature(List<Tensor> inputs, ReduceOp reduceOp) {
    return Signature.ofParts(
        Signature.of(OpType.REDUCE_SCATTER, inputs.get(0).dtype(), reduceOp.kind(), 0, 0),
        inputs.stream().mapToLong(Tensor::byteSize).toArray());
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
