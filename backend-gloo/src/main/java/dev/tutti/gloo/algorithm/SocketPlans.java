package dev.tutti.gloo.algorithm;

import dev.tutti.OpType;
import dev.tutti.spi.OperationPlan;
import dev.tutti.spi.OperationPlan.Step;
import java.util.List;
import java.util.Optional;

/** Returns the steps of operations over sockets, by the algorithm that a table names. */
public final class SocketPlans {
  /** The element size that the cut of segments assumes; it is the same for all but odd sizes. */
  private static final int ELEMENT_BYTES = 4;

  private SocketPlans() {}

  /**
   * Returns the steps, or empty if the operation is not known.
   *
   * @param table the table of algorithms
   * @param bytes the bytes of a rank's tensor; if each rank has a part, those of all parts
   */
  public static Optional<OperationPlan> plan(
      AlgorithmTable table, OpType type, long bytes, int ranks) {
    return switch (type) {
      case ALL_REDUCE, REDUCE, BROADCAST -> Optional.of(chosen(table, type, bytes, ranks));
      case ALL_GATHER, ALL_GATHER_INTO ->
          Optional.of(chosen(table, OpType.ALL_GATHER, bytes, ranks));
      case REDUCE_SCATTER, REDUCE_SCATTER_INTO ->
          Optional.of(chosen(table, OpType.REDUCE_SCATTER, bytes, ranks));
      case GATHER, SCATTER, ALL_TO_ALL, ALL_TO_ALL_SINGLE ->
          Optional.of(
              new OperationPlan(
                  SocketAlgorithms.DIRECT_PATH, direct(ranks, (double) bytes / ranks)));
      case SEND ->
          Optional.of(
              new OperationPlan(SocketAlgorithms.DIRECT_PATH, Flow.steps(1, (double) bytes)));
      case BARRIER ->
          Optional.of(
              new OperationPlan(DisseminationBarrier.PATH, DisseminationBarrier.steps(ranks)));
      default -> Optional.empty();
    };
  }

  private static OperationPlan chosen(AlgorithmTable table, OpType type, long bytes, int ranks) {
    Algorithm algorithm = table.choose(type, bytes, ranks);
    boolean exchanges = ranks > 1 && bytes > 0;
    return new OperationPlan(
        algorithm.path(), exchanges ? steps(algorithm, type, bytes, ranks) : List.of());
  }

  private static List<Step> steps(Algorithm algorithm, OpType type, long bytes, int ranks) {
    double part = (double) bytes / ranks;
    return switch (algorithm) {
      case RECURSIVE_DOUBLING -> RecursiveDoublingAllReduce.steps(ranks, (double) bytes);
      case HALVING_DOUBLING -> HalvingDoublingAllReduce.steps(ranks, bytes, Long.MAX_VALUE);
      case PIPELINED_HALVING_DOUBLING ->
          HalvingDoublingAllReduce.steps(ranks, bytes, SocketAlgorithms.pieceBytes(ranks));
      case BINOMIAL ->
          type == OpType.REDUCE
              ? BinomialReduce.steps(ranks, (double) bytes)
              : BinomialBroadcast.steps(ranks, (double) bytes);
      case CHAIN -> ChainBroadcast.steps(ranks, bytes);
      case BRUCK -> BruckAllGather.steps(ranks, part);
      case PAIRWISE -> PairwiseReduceScatter.steps(ranks, part);
      case ALL_REDUCE -> RingAllReduce.steps(ranks, bytes, ELEMENT_BYTES);
      case RING ->
          switch (type) {
            case REDUCE -> RingReduce.steps(ranks, bytes, ELEMENT_BYTES);
            case ALL_GATHER -> RingAllGather.steps(ranks, part);
            default -> RingAllReduce.steps(ranks, bytes, ELEMENT_BYTES);
          };
    };
  }

  /** Returns the only round of an operation in which a rank has a message for each other rank. */
  private static List<Step> direct(int ranks, double bytes) {
    return ranks == 1 ? List.of() : List.of(Step.network(ranks / 2, 1, ranks - 1, bytes));
  }
}
