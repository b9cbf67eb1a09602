package dev.tutti.gloo.shm;

import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.gloo.algorithm.Reduction;
import dev.tutti.gloo.algorithm.SparseAllReduce;
import dev.tutti.gloo.algorithm.TensorParts;
import dev.tutti.gloo.backend.GlooBackend;
import dev.tutti.gloo.backend.Wire;
import dev.tutti.gloo.transport.RequestedAlgorithm;
import dev.tutti.gloo.transport.Signature;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Runs the collectives of ranks that share memory. */
public final class ShmBackend extends GlooBackend {
  static final String ONE_SHOT = "gloo/shared/one-shot";
  private static final String SYMMETRIC = "gloo/shared/symmetric";
  static final String DIRECT = "gloo/shared/direct";
  static final String STAGED = "gloo/shared/staged";
  static final String FLAGS = "gloo/shared/flags";

  private final ShmChannel channel;
  private final SymmetricMemories memories;
  private final OneShotAllReduce oneShot;
  private final HostReads reads;
  private final DirectAllReduce directAllReduce;
  private final StagedAllReduce allReduce;
  private final SymmetricAllReduce symmetricAllReduce;
  private final StagedBroadcast broadcast;
  private final DirectBroadcast directBroadcast;
  private final StagedAllGather allGather;
  private final SparseAllReduce sparseAllReduce;
  private final StagedGather gather;
  private final StagedScatter scatter;
  private final StagedAllToAll allToAll;
  private final StagedReduceScatter reduceScatter;
  private final DirectReduceScatter directReduceScatter;

  /** The inputs of a reduce-scatter, or the outputs of an all-gather. */
  private final TensorParts parts;

  /**
   * Creates an instance for any number of operations.
   *
   * @param channel connects the ranks; closed with this backend
   * @param memories their symmetric memory; closed with this backend
   * @param readsMemory whether this rank and the others read each other's memory, if the system and
   *     the JVM allow it
   * @param mapsTensors whether this rank may map the others' large tensors for that
   */
  public ShmBackend(
      Wire wire,
      ShmChannel channel,
      SymmetricMemories memories,
      boolean readsMemory,
      boolean mapsTensors) {
    super(wire);
    this.channel = channel;
    this.memories = memories;
    reads = new HostReads(channel, readsMemory, mapsTensors);
    directAllReduce = new DirectAllReduce(channel, reads);
    symmetricAllReduce = new SymmetricAllReduce(channel, memories);
    oneShot = new OneShotAllReduce(channel);
    allReduce = new StagedAllReduce(channel);
    broadcast = new StagedBroadcast(channel);
    directBroadcast = new DirectBroadcast(channel, reads);
    allGather = new StagedAllGather(channel, reads);
    sparseAllReduce = new SparseAllReduce(channel.rank, channel.size);
    gather = new StagedGather(channel);
    scatter = new StagedScatter(channel);
    allToAll = new StagedAllToAll(channel, reads);
    reduceScatter = new StagedReduceScatter(channel);
    directReduceScatter = new DirectReduceScatter(channel, reads);
    parts = new TensorParts(channel.size);
  }

  @Override
  protected void allReduce(
      Operation op, Tensor tensor, ReduceOp reduceOp, RequestedAlgorithm algorithm)
      throws Exception {
    Reduction.before(reduceOp, tensor);
    channel.enter(Signature.ofAllReduce(tensor, reduceOp.kind(), algorithm));
    if (algorithm != RequestedAlgorithm.AUTO) {
      if (!tryToReduce(op, tensor, reduceOp.kind(), algorithm)) {
        throw new UnsupportedOperationException(
            "allReduce on rank %d: algorithm %s"
                .formatted(channel.rank, AllReduceRule.refusal(algorithm)));
      }
      return;
    }
    for (RequestedAlgorithm candidate : AllReduceRule.candidates(tensor.byteSize())) {
      if (tryToReduce(op, tensor, reduceOp.kind(), candidate)) {
        return;
      }
    }
  }

  /** Reduces by an algorithm; returns false if it does not serve, which is so on all ranks. */
  private boolean tryToReduce(
      Operation op, Tensor tensor, ReduceOp.Kind kind, RequestedAlgorithm algorithm)
      throws Exception {
    MemorySegment memory = tensor.segment();
    long bytes = tensor.byteSize();
    DType dtype = tensor.dtype();
    if (algorithm == RequestedAlgorithm.ONE_SHOT || bytes == 0) {
      op.took(ONE_SHOT);
      oneShot.run(op, memory, bytes, dtype, kind);
      return true;
    }
    if (algorithm == RequestedAlgorithm.STAGED) {
      op.took(STAGED);
      allReduce.run(op, memory, bytes, dtype, kind, -1);
      return true;
    }
    boolean isSymmetric = algorithm == RequestedAlgorithm.SYMMETRIC;
    boolean isDone =
        isSymmetric
            ? symmetricAllReduce.run(op, memory, bytes, dtype, kind)
            : directAllReduce.run(op, memory, bytes, dtype, kind);
    if (isDone) {
      op.took(isSymmetric ? SYMMETRIC : DIRECT);
    }
    return isDone;
  }

  @Override
  protected @Nullable String reason(
      RequestedAlgorithm algorithm, Tensor tensor, ReduceOp reduceOp) {
    return AllReduceRule.reason(algorithm, tensor, reduceOp);
  }

  @Override
  protected Tensor sumSparse(Operation op, Tensor tensor) throws Exception {
    channel.enter(Signature.of(OpType.ALL_REDUCE_SPARSE, tensor.dtype(), ReduceOp.Kind.SUM, 0, 0));
    op.took(STAGED);
    return sparseAllReduce.run(
        op,
        tensor,
        false,
        new SparseAllReduce.Exchange() {
          @Override
          public void gather(MemorySegment memory, long bytes) throws Exception {
            allGather.run(op, parts.ofEqual(memory, bytes), memory.asSlice(channel.rank * bytes));
            parts.forget();
          }

          @Override
          public void gatherUneven(MemorySegment memory, long[] bytes) throws Exception {
            parts.of(memory, bytes);
            allGather.run(op, parts, memory.asSlice(parts.offset(channel.rank)));
            parts.forget();
          }
        });
  }

  @Override
  public void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) throws Exception {
    long bytes = tensor.byteSize();
    Reduction.before(reduceOp, tensor);
    channel.enter(Signature.of(OpType.REDUCE, tensor.dtype(), reduceOp.kind(), root, bytes));
    if (bytes == 0) {
      channel.agree(op);
    }
    op.took(STAGED);
    allReduce.run(op, tensor.segment(), bytes, tensor.dtype(), reduceOp.kind(), root);
  }

  @Override
  public void broadcast(Operation op, Tensor tensor, int root) throws Exception {
    channel.enter(Signature.of(OpType.BROADCAST, tensor.dtype(), root, tensor.byteSize()));
    op.took(DIRECT);
    if (!directBroadcast.run(op, tensor.segment(), tensor.byteSize(), root)) {
      op.took(STAGED);
      broadcast.run(op, tensor.segment(), tensor.byteSize(), root);
    }
  }

  @Override
  public void allGather(Operation op, List<Tensor> outputs, Tensor input) throws Exception {
    allGather(op, parts.of(outputs), input);
  }

  @Override
  public void allGatherInto(Operation op, Tensor output, Tensor input) throws Exception {
    allGather(op, parts.ofEqual(output), input);
  }

  @Override
  public void allGatherInto(Operation op, Tensor output, Tensor input, long[] outputSplits)
      throws Exception {
    allGather(op, parts.of(output, outputSplits), input);
  }

  private void allGather(Operation op, TensorParts outputs, Tensor input) throws Exception {
    try {
      long ofEmpty = Signature.of(OpType.ALL_GATHER, input.dtype(), 0, 0);
      channel.enter(Signature.ofParts(ofEmpty, outputs.sizes()));
      op.took(STAGED);
      allGather.run(op, outputs, input.segment());
    } finally {
      outputs.forget();
    }
  }

  @Override
  public void gather(Operation op, List<Tensor> outputs, Tensor input, int root) throws Exception {
    channel.enter(Signature.of(OpType.GATHER, input.dtype(), root, input.byteSize()));
    channel.agree(op);
    op.took(STAGED);
    gather.run(op, outputs, input, root);
  }

  @Override
  public void scatter(Operation op, Tensor output, List<Tensor> inputs, int root) throws Exception {
    channel.enter(Signature.of(OpType.SCATTER, output.dtype(), root, output.byteSize()));
    channel.agree(op);
    op.took(STAGED);
    scatter.run(op, output, inputs, root);
  }

  @Override
  public void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) throws Exception {
    channel.enter(Signature.of(OpType.ALL_TO_ALL, inputs.get(0).dtype(), 0, 0));
    op.took(STAGED);
    allToAll.run(op, outputs, inputs);
  }

  @Override
  public void allToAllSingle(
      Operation op, Tensor output, Tensor input, long[] outputSplits, long[] inputSplits)
      throws Exception {
    channel.enter(Signature.of(OpType.ALL_TO_ALL, input.dtype(), 0, 0));
    op.took(STAGED);
    allToAll.run(op, output, input, outputSplits, inputSplits);
  }

  @Override
  public void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    reduceScatter(op, output, reduceOp, parts.of(inputs));
  }

  @Override
  public void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp)
      throws Exception {
    reduceScatter(op, output, reduceOp, parts.ofEqual(input));
  }

  @Override
  public void reduceScatterInto(
      Operation op, Tensor output, Tensor input, long[] inputSplits, ReduceOp reduceOp)
      throws Exception {
    reduceScatter(op, output, reduceOp, parts.of(input, inputSplits));
  }

  private void reduceScatter(Operation op, Tensor output, ReduceOp reduceOp, TensorParts inputs)
      throws Exception {
    ReduceOp.Kind kind = reduceOp.kind();
    double factor = kind == ReduceOp.Kind.PREMUL_SUM ? reduceOp.factor() : 1;
    try {
      long ofEmpty = Signature.of(OpType.REDUCE_SCATTER, output.dtype(), kind, 0, 0);
      channel.enter(Signature.ofParts(ofEmpty, inputs.sizes()));
      op.took(DIRECT);
      if (kind == ReduceOp.Kind.PREMUL_SUM
          || !directReduceScatter.run(op, output.segment(), inputs, output.dtype(), kind)) {
        op.took(STAGED);
        reduceScatter.run(op, output.segment(), inputs, output.dtype(), kind, factor);
      }
    } finally {
      inputs.forget();
    }
  }

  @Override
  public void barrier(Operation op) throws Exception {
    channel.enter(Signature.of(OpType.BARRIER));
    op.took(FLAGS);
    channel.agree(op);
  }

  @Override
  public SymmetricMemory allocateSymmetric(Operation op, long byteSize) throws Exception {
    return memories.allocate(op, byteSize);
  }

  @Override
  public Map<Feature, String> missingFeatures() {
    return Map.of();
  }

  @Override
  public String toString() {
    return "shared memory";
  }

  @Override
  public void close() {
    super.close();
    // The last one is closed first, and each one even if others throw.
    try (channel;
        reads) {
      memories.close();
    }
  }
}
