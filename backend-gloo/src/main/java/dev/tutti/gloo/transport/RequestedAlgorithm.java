package dev.tutti.gloo.transport;

import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The algorithm that the caller of an all-reduce requested. */
public enum RequestedAlgorithm {
  /** No algorithm was requested. */
  AUTO("auto"),
  /** Every rank reads all tensors and reduces them itself: in shared memory. */
  ONE_SHOT("one-shot"),
  /** Ranks copy pieces through memory that they all share. */
  STAGED("staged"),
  /** Ranks read each other's tensors in place: in shared memory. */
  DIRECT("direct"),
  /** Ranks write results into each other's symmetric memory. */
  SYMMETRIC("symmetric"),
  /** The ring algorithm of Gloo: over sockets, including groups with PyTorch ranks. */
  RING("ring"),
  /** Pairs of ranks exchange whole tensors: over sockets. */
  RECURSIVE_DOUBLING("recursive-doubling"),
  /** Pairs of ranks exchange ever smaller halves, then ever larger ones: over sockets. */
  HALVING_DOUBLING("halving-doubling"),
  /** Halving-doubling in pieces: over sockets. */
  PIPELINED_HALVING_DOUBLING("pipelined-halving-doubling"),
  /** Shared memory within a host, sockets between hosts. */
  TWO_LEVEL("two-level");

  private final String label;

  RequestedAlgorithm(String label) {
    this.label = label;
  }

  /** Returns the name, as callers give it and as it ends the path of an operation. */
  public String label() {
    return label;
  }

  /** Returns the names that a caller may give. */
  public static List<String> labels() {
    return Arrays.stream(values()).filter(each -> each != AUTO).map(each -> each.label).toList();
  }

  /**
   * Finds an algorithm.
   *
   * @param label one of {@link #labels}, or null if none was requested
   */
  public static RequestedAlgorithm of(@Nullable String label) {
    if (label == null) {
      return AUTO;
    }
    return Arrays.stream(values())
        .filter(each -> each.label.equals(label))
        .findFirst()
        .orElseThrow(() -> new IllegalArgumentException("no algorithm '" + label + "'"));
  }
}
