package dev.tutti.gloo.algorithm;

import dev.tutti.gloo.transport.RequestedAlgorithm;
import java.util.Arrays;
import java.util.Optional;

/** The algorithms that Tutti ranks choose from. */
public enum Algorithm {
  /** {@link RingAllReduce}, {@link RingReduce}, {@link RingAllGather}. */
  RING("ring"),
  /** {@link RecursiveDoublingAllReduce}. */
  RECURSIVE_DOUBLING("recursive-doubling"),
  /** {@link HalvingDoublingAllReduce}. */
  HALVING_DOUBLING("halving-doubling"),
  /** {@link HalvingDoublingAllReduce}, in pieces of {@link SocketAlgorithms#pieceBytes}. */
  PIPELINED_HALVING_DOUBLING("pipelined-halving-doubling"),
  /** {@link BinomialReduce}, {@link BinomialBroadcast}. */
  BINOMIAL("binomial"),
  /** {@link ChainBroadcast}. */
  CHAIN("chain"),
  /** {@link BruckAllGather}. */
  BRUCK("bruck"),
  /** {@link PairwiseReduceScatter}. */
  PAIRWISE("pairwise"),
  /** An all-reduce, from whose result each rank keeps its part. */
  ALL_REDUCE("all-reduce");

  private final String label;
  private final String path;

  Algorithm(String label) {
    this.label = label;
    this.path = "gloo/sockets/" + label;
  }

  /** Returns the path of operations over sockets that use this algorithm. */
  public String path() {
    return path;
  }

  /** Returns the name in settings and reports. */
  public String label() {
    return label;
  }

  /** Returns the algorithm requested for an all-reduce over sockets, if it is one of these. */
  public static Optional<Algorithm> of(RequestedAlgorithm algorithm) {
    return switch (algorithm) {
      case RING -> Optional.of(RING);
      case RECURSIVE_DOUBLING -> Optional.of(RECURSIVE_DOUBLING);
      case HALVING_DOUBLING -> Optional.of(HALVING_DOUBLING);
      case PIPELINED_HALVING_DOUBLING -> Optional.of(PIPELINED_HALVING_DOUBLING);
      default -> Optional.empty();
    };
  }

  static Optional<Algorithm> of(String label) {
    return Arrays.stream(values()).filter(value -> value.label.equals(label)).findFirst();
  }
}
