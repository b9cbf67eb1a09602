package dev.tutti.gloo.algorithm;

import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Runs the algorithm that a table names for an operation and its size, between ranks that are all
 * Tutti ranks. Arguments are as in {@link dev.tutti.spi.Backend}; roots are given as numbers in the
 * endpoint.
 */
public final class SocketAlgorithms {
  /** The path of operations in which a rank has one message for each other rank. */
  public static final String DIRECT_PATH = "gloo/sockets/direct";

  private static final long MOST_PIECE_BYTES = 1 << 20;
  private static final long LEAST_MESSAGE_BYTES = 256 * 1024;

  private final AlgorithmTable table;
  private final int size;
  private final RingAllReduce ringAllReduce;
  private final RecursiveDoublingAllReduce recursiveDoubling;
  private final HalvingDoublingAllReduce halvingDoubling;
  private final HalvingDoublingAllReduce pipelined;
  private final RingReduce ringReduce;
  private final BinomialReduce binomialReduce;
  private final BinomialBroadcast binomialBroadcast;
  private final ChainBroadcast chain;
  private final RingAllGather ringAllGather;
  private final BruckAllGather bruck;
  private final PairwiseReduceScatter pairwise;
  private final DisseminationBarrier barrier;

  /**
   * Creates an instance for any number of operations, one at a time.
   *
   * @param table the table of algorithms, the same on all ranks
   */
  public SocketAlgorithms(Endpoint transport, AlgorithmTable table, Scratch scratch) {
    this.table = table;
    this.size = transport.size();
    this.ringAllReduce = new RingAllReduce(transport);
    this.recursiveDoubling = new RecursiveDoublingAllReduce(transport, scratch);
    this.halvingDoubling = new HalvingDoublingAllReduce(transport, Long.MAX_VALUE);
    this.pipelined = new HalvingDoublingAllReduce(transport, pieceBytes(size));
    this.ringReduce = new RingReduce(transport, scratch);
    this.binomialReduce = new BinomialReduce(transport, scratch);
    this.binomialBroadcast = new BinomialBroadcast(transport);
    this.chain = new ChainBroadcast(transport);
    this.ringAllGather = new RingAllGather(transport);
    this.bruck = new BruckAllGather(transport, scratch);
    this.pairwise = new PairwiseReduceScatter(transport, scratch);
    this.barrier = new DisseminationBarrier(transport);
  }

  /** Returns the size of the pieces of a large all-reduce. */
  static long pieceBytes(int ranks) {
    return Math.min(MOST_PIECE_BYTES, Integer.highestOneBit(ranks) * LEAST_MESSAGE_BYTES);
  }

  /** Reduces in place. */
  public void allReduce(Operation op, int tag, Tensor tensor, ReduceOp reduceOp) throws Exception {
    allReduce(op, tag, tensor, reduceOp, table.choose(OpType.ALL_REDUCE, tensor.byteSize(), size));
  }

  private Algorithm choose(Operation op, OpType type, long bytes) {
    Algorithm algorithm = table.choose(type, bytes, size);
    op.took(algorithm.path());
    return algorithm;
  }

  /** Reduces in place, using the given algorithm. */
  public void allReduce(
      Operation op, int tag, Tensor tensor, ReduceOp reduceOp, Algorithm algorithm)
      throws Exception {
    op.took(algorithm.path());
    switch (algorithm) {
      case RECURSIVE_DOUBLING -> recursiveDoubling.run(op, tag, tensor, reduceOp);
      case HALVING_DOUBLING -> halvingDoubling.run(op, tag, tensor, reduceOp);
      case PIPELINED_HALVING_DOUBLING -> pipelined.run(op, tag, tensor, reduceOp);
      default -> ringAllReduce.run(op, tag, tensor, reduceOp);
    }
  }

  /** Reduces to one rank. */
  public void reduce(Operation op, int tag, Tensor tensor, ReduceOp reduceOp, int root)
      throws Exception {
    if (choose(op, OpType.REDUCE, tensor.byteSize()) == Algorithm.RING) {
      ringReduce.run(op, tag, tensor, reduceOp, root);
    } else {
      binomialReduce.run(op, tag, tensor, reduceOp, root);
    }
  }

  /** Copies the root's bytes to all ranks. */
  public void broadcast(Operation op, int tag, MemorySegment memory, long bytes, int root)
      throws Exception {
    if (choose(op, OpType.BROADCAST, bytes) == Algorithm.BINOMIAL) {
      binomialBroadcast.run(op, tag, memory, bytes, root);
    } else {
      chain.run(op, tag, memory, bytes, root);
    }
  }

  /** Gathers parts. */
  public void allGather(Operation op, int tag, TensorParts parts) throws Exception {
    if (choose(op, OpType.ALL_GATHER, parts.total()) == Algorithm.RING) {
      ringAllGather.run(op, tag, parts);
    } else {
      bruck.run(op, tag, parts);
    }
  }

  /** Reduces one tensor for each rank, pairwise. */
  public void reduceScatter(
      Operation op, int tag, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    op.took(Algorithm.PAIRWISE.path());
    pairwise.run(op, tag, output, inputs, reduceOp);
  }

  /** Waits for all ranks. */
  public void barrier(Operation op, int tag) throws Exception {
    op.took(DisseminationBarrier.PATH);
    barrier.run(op, tag);
  }
}
