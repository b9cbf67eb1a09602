package dev.tutti;

/** Names every operation of a process group, with c10d's numbers. */
public enum OpType {
  /** Copies the root's tensor to all ranks. */
  BROADCAST(0, "broadcast"),
  /** Reduces to all ranks, in place. */
  ALL_REDUCE(1, "allReduce"),
  /** Reduces several tensors at once. */
  ALL_REDUCE_COALESCED(2, "allReduceCoalesced"),
  /** Reduces to one rank. */
  REDUCE(3, "reduce"),
  /** Gathers a tensor of each rank on all ranks. */
  ALL_GATHER(4, "allGather"),
  /** Gathers on all ranks into one tensor. */
  ALL_GATHER_INTO(5, "allGatherInto"),
  /** Gathers several tensors at once. */
  ALL_GATHER_COALESCED(6, "allGatherIntoCoalesced"),
  /** Gathers on one rank. */
  GATHER(7, "gather"),
  /** Hands each rank one tensor of the root. */
  SCATTER(8, "scatter"),
  /** Reduces and hands each rank its part. */
  REDUCE_SCATTER(9, "reduceScatter"),
  /** Exchanges parts of one tensor between all ranks. */
  ALL_TO_ALL_SINGLE(10, "allToAllSingle"),
  /** Exchanges tensors between all ranks. */
  ALL_TO_ALL(11, "allToAll"),
  /** Sends to one peer. */
  SEND(12, "send"),
  /** Receives from one peer. */
  RECV(13, "recv"),
  /** Receives from whichever peer sends first. */
  RECV_ANY_SOURCE(14, "recvAnySource"),
  /** Waits for all ranks. */
  BARRIER(15, "barrier"),
  /** Reduces one tensor and hands each rank its part. */
  REDUCE_SCATTER_INTO(16, "reduceScatterInto"),
  /** Runs a batch of operations as one. */
  COALESCED(17, "batch"),
  /** Reduces a sparse tensor to all ranks. */
  ALL_REDUCE_SPARSE(18, "allReduceSparse"),
  /** Waits for all ranks and names the missing ones. */
  MONITORED_BARRIER(19, "monitoredBarrier"),
  /** Reduces and scatters several tensors at once. */
  REDUCE_SCATTER_COALESCED(20, "reduceScatterIntoCoalesced"),
  /** Creates groups out of another, by color. */
  SPLIT(21, "split"),
  /** Sets a group up. */
  INIT(22, "init"),
  /** Closes a group. */
  CLOSE(23, "close"),
  /** Allocates symmetric memory. */
  ALLOCATE_SYMMETRIC(24, "allocateSymmetric"),
  /** Creates a group of some ranks of another. */
  SUBGROUP(25, "subgroup"),
  /** Stands for anything else. */
  UNKNOWN(100, "unknown");

  private final int code;
  private final String label;

  OpType(int code, String label) {
    this.code = code;
    this.label = label;
  }

  /** Returns c10d's number; numbers 19 to 25 are Tutti's own. */
  public int code() {
    return code;
  }

  /** Returns the method name, as users write it. */
  public String label() {
    return label;
  }

  /** Tells whether the operation moves data between two ranks only. */
  public boolean isPointToPoint() {
    return this == SEND || this == RECV || this == RECV_ANY_SOURCE;
  }
}
