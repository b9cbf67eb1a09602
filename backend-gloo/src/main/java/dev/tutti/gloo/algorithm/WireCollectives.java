package dev.tutti.gloo.algorithm;

import dev.tutti.AllReduceAlgorithm;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gloo.transport.Signature;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Runs collectives over sockets as PyTorch's {@code ProcessGroupGloo} does, message for message.
 */
public final class WireCollectives implements Collectives {
  private static final String DIRECT_PATH = "gloo/sockets/direct";

  private final Transport transport;
  private final RingAllReduce allReduce;
  private final RingReduce reduce;
  private final RingAllGather allGather;
  private final UnevenRingAllGather unevenAllGather;
  private final SparseAllReduce sparseAllReduce;
  private final BinomialBroadcast broadcast;
  private final DirectGather gather;
  private final DirectScatter scatter;
  private final DirectAllToAll allToAll;
  private final DisseminationBarrier barrier;
  private final MonitoredBarrier monitoredBarrier;
  private final Scratch inputCopy = new Scratch();

  // Numbers the collectives; has to grow by what PyTorch's counter grows by.
  private int nextTag;

  /**
   * Prepares for any number of operations.
   *
   * @param transport connects the ranks
   */
  public WireCollectives(Transport transport) {
    Scratch scratch = new Scratch();
    this.transport = transport;
    this.allReduce = new RingAllReduce(transport);
    this.reduce = new RingReduce(transport, scratch);
    this.allGather = new RingAllGather(transport);
    this.unevenAllGather = new UnevenRingAllGather(transport);
    this.sparseAllReduce = new SparseAllReduce(transport.rank(), transport.size());
    this.broadcast = new BinomialBroadcast(transport);
    this.gather = new DirectGather(transport);
    this.scatter = new DirectScatter(transport);
    this.allToAll = new DirectAllToAll(transport);
    this.barrier = new DisseminationBarrier(transport);
    this.monitoredBarrier = new MonitoredBarrier(transport);
  }

  /**
   * Begins a collective.
   *
   * @param signature what the ranks must agree on
   * @return its number
   * @throws IllegalStateException if a peer is known to have called something else
   */
  public int next(long signature) {
    int tag = nextTag++;
    transport.sign(signature, tag);
    return tag;
  }

  /**
   * Copies a rank's input to its part of the output, where it may be already.
   *
   * @return the output's memory
   */
  public MemorySegment fillOwn(Tensor output, Tensor input) {
    MemorySegment memory = output.segment();
    long bytes = input.byteSize();
    MemorySegment.copy(input.segment(), 0, memory, transport.rank() * bytes, bytes);
    return memory;
  }

  @Override
  public void allReduce(
      Operation op, Tensor tensor, ReduceOp reduceOp, AllReduceAlgorithm algorithm)
      throws Exception {
    int tag = next(Signature.ofAllReduce(tensor, reduceOp.kind(), algorithm));
    op.took(Algorithm.RING.path());
    allReduce.run(op, tag, tensor, reduceOp);
  }

  @Override
  public @Nullable String reasonAgainst(
      AllReduceAlgorithm algorithm, Tensor tensor, ReduceOp reduceOp) {
    return algorithm == AllReduceAlgorithm.RING
        ? null
        : "ranks of PyTorch are in the group, which know ring alone";
  }

  @Override
  public Tensor allReduceSparse(Operation op, Tensor tensor) throws Exception {
    return allReduceSparse(op, tensor, true);
  }

  /** Sums sparse tensors with the roundings of PyTorch, or fewer. */
  Tensor allReduceSparse(Operation op, Tensor tensor, boolean asPytorch) throws Exception {
    int tag = next(Signature.of(OpType.ALL_REDUCE_SPARSE, tensor.dtype(), ReduceOp.Kind.SUM, 0, 0));
    op.took(Algorithm.RING.path());
    return sparseAllReduce.run(
        op,
        tensor,
        asPytorch,
        new SparseAllReduce.Exchange() {
          @Override
          public void gather(MemorySegment memory, long bytes) throws Exception {
            allGather.run(op, tag, memory, bytes);
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
    op.took(Algorithm.RING.path());
    reduce.run(op, tag, tensor, reduceOp, root);
  }

  @Override
  public void broadcast(Operation op, Tensor tensor, int root) throws Exception {
    int tag = next(Signature.of(OpType.BROADCAST, tensor.dtype(), root, tensor.byteSize()));
    op.took(Algorithm.BINOMIAL.path());
    broadcast.run(op, tag, tensor.segment(), tensor.byteSize(), root);
  }

  @Override
  public void allGatherInto(Operation op, Tensor output, Tensor input) throws Exception {
    long bytes = input.byteSize();
    int tag = next(Signature.of(OpType.ALL_GATHER, input.dtype(), 0, bytes));
    op.took(Algorithm.RING.path());
    allGather.run(op, tag, fillOwn(output, input), bytes);
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

  /** Is one all-reduce of each rank's part, as in PyTorch, where Gloo has nothing better. */
  @Override
  public void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    for (int rank = 0; rank < inputs.size(); rank++) {
      Tensor reduced = allReduceCopy(op, inputs.get(rank), reduceOp);
      if (rank == transport.rank()) {
        output.copyFrom(reduced);
      }
    }
  }

  /** Is an all-reduce of the whole, as in PyTorch, where Gloo has nothing better. */
  @Override
  public void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp)
      throws Exception {
    Tensor reduced = allReduceCopy(op, input, reduceOp);
    output.copyFrom(reduced.narrow(0, transport.rank() * output.numel(), output.numel()));
  }

  private Tensor allReduceCopy(Operation op, Tensor input, ReduceOp reduceOp) throws Exception {
    MemorySegment memory = inputCopy.atLeast(Math.max(1, input.byteSize()));
    Tensor copy = Tensor.wrap(memory, input.dtype(), input.numel());
    copy.copyFrom(input);
    allReduce(op, copy, reduceOp);
    return copy;
  }

  @Override
  public void barrier(Operation op) throws Exception {
    int tag = next(Signature.of(OpType.BARRIER));
    op.took(DisseminationBarrier.PATH);
    barrier.run(op, tag);
  }

  /**
   * Waits for all ranks and names the missing ones.
   *
   * @param op carries the deadline
   * @param waitAllRanks whether rank 0 collects all missing ranks
   * @throws Exception if a rank did not come
   */
  public void monitoredBarrier(Operation op, boolean waitAllRanks) throws Exception {
    int tag = next(Signature.of(OpType.MONITORED_BARRIER));
    nextTag++;
    op.took(DIRECT_PATH);
    monitoredBarrier.run(op, tag, waitAllRanks);
  }

  @Override
  public void close() {}
}
