package dev.tutti.contracts.fuzz;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.OpType;

/** The kinds of {@link Step}, each with the operation that it needs from the backend. */
enum StepKind {
  BROADCAST(OpType.BROADCAST),
  ALL_REDUCE(OpType.ALL_REDUCE),
  ALL_REDUCE_COALESCED(OpType.ALL_REDUCE_COALESCED),
  ALL_REDUCE_SPARSE(OpType.ALL_REDUCE_SPARSE),
  REDUCE(OpType.REDUCE),
  ALL_GATHER(OpType.ALL_GATHER),
  ALL_GATHER_INTO(OpType.ALL_GATHER_INTO),
  ALL_GATHER_COALESCED(OpType.ALL_GATHER_INTO_COALESCED),
  GATHER(OpType.GATHER),
  SCATTER(OpType.SCATTER),
  REDUCE_SCATTER(OpType.REDUCE_SCATTER),
  REDUCE_SCATTER_INTO(OpType.REDUCE_SCATTER_INTO),
  REDUCE_SCATTER_COALESCED(OpType.REDUCE_SCATTER_INTO_COALESCED),
  ALL_TO_ALL(OpType.ALL_TO_ALL),
  ALL_TO_ALL_SINGLE(OpType.ALL_TO_ALL_SINGLE),
  BARRIER(OpType.BARRIER),
  MONITORED_BARRIER(OpType.BARRIER),
  /** Runs an all-reduce, an all-gather and a reduce-scatter as one. */
  BATCH(OpType.ALL_REDUCE),
  ALL_GATHER_OBJECT(OpType.ALL_GATHER),
  BROADCAST_OBJECT(OpType.BROADCAST),
  GATHER_OBJECT(OpType.GATHER),
  SCATTER_OBJECT(OpType.SCATTER),
  /** Writes to the symmetric memory of all ranks between two barriers. */
  SYMMETRIC(OpType.BARRIER),
  /** Sends from one rank to another. */
  MESSAGE(OpType.SEND),
  /** Sends from each rank to the next, which receives first. */
  RING(OpType.SEND),
  /** Exchanges messages between all pairs in one batch. */
  BATCH_OF_MESSAGES(OpType.SEND),
  /**
   * Sends from all ranks to one, which receives from the first by name and from the rest as any
   * source.
   */
  ANY_SOURCE(OpType.RECV_ANY_SOURCE),
  /** Creates groups by color. */
  SPLIT(OpType.UNKNOWN),
  /** Creates one group of some ranks. */
  SUBGROUP(OpType.UNKNOWN),
  /** Closes a group on each rank once its steps on that rank are done. */
  CLOSE(OpType.UNKNOWN);

  private final OpType needs;

  StepKind(OpType needs) {
    this.needs = needs;
  }

  /** Returns whether a backend can perform the step, given whether tensors are on the host. */
  boolean isPossible(Capabilities capabilities, boolean onHost) {
    boolean operation = needs == OpType.UNKNOWN || capabilities.has(needs);
    return operation
        && switch (this) {
          case SYMMETRIC -> capabilities.has(Feature.SYMMETRIC_MEMORY);
          case RING, ANY_SOURCE -> capabilities.has(Feature.TAGS);
          case BATCH ->
              capabilities.has(OpType.ALL_GATHER_INTO)
                  && capabilities.has(OpType.REDUCE_SCATTER_INTO);
          case ALL_GATHER_OBJECT, BROADCAST_OBJECT, GATHER_OBJECT, SCATTER_OBJECT -> onHost;
          default -> true;
        };
  }

  /** Returns the minimum number of element counts that a step has in a group. */
  int parts(int members) {
    return switch (this) {
      case BARRIER, MONITORED_BARRIER, SYMMETRIC -> 0;
      case ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE_SPARSE -> members;
      case ALL_GATHER_OBJECT, BROADCAST_OBJECT, GATHER_OBJECT, SCATTER_OBJECT -> members;
      case ALL_TO_ALL, ALL_TO_ALL_SINGLE -> members * members;
      default -> 1;
    };
  }

  boolean isMessage() {
    return this == MESSAGE || this == RING || this == BATCH_OF_MESSAGES || this == ANY_SOURCE;
  }

  boolean makesGroups() {
    return this == SPLIT || this == SUBGROUP;
  }

  /** Returns whether elements are reduced, so that the data must be exact. */
  boolean isReduction() {
    return switch (this) {
      case ALL_REDUCE,
          ALL_REDUCE_COALESCED,
          ALL_REDUCE_SPARSE,
          REDUCE,
          REDUCE_SCATTER,
          REDUCE_SCATTER_INTO,
          REDUCE_SCATTER_COALESCED,
          BATCH ->
          true;
      default -> false;
    };
  }

  /** Returns whether the step can return before it is done. */
  boolean canBeAsync() {
    return switch (this) {
      case MONITORED_BARRIER,
          ALL_GATHER_OBJECT,
          BROADCAST_OBJECT,
          GATHER_OBJECT,
          SCATTER_OBJECT,
          SYMMETRIC,
          SPLIT,
          SUBGROUP,
          CLOSE ->
          false;
      default -> true;
    };
  }
}
