package dev.tutti;

/** The operations of a process group, each named after its method. */
public enum OpType {
  /** Copies the root's tensor to all ranks. */
  BROADCAST("broadcast"),
  /** Reduces to all ranks, in place. */
  ALL_REDUCE("allReduce"),
  /** Reduces several tensors at once. */
  ALL_REDUCE_COALESCED("allReduceCoalesced"),
  /** Reduces to one rank. */
  REDUCE("reduce"),
  /** Gathers one tensor of each rank on all ranks. */
  ALL_GATHER("allGather"),
  /** Gathers on all ranks, into one tensor. */
  ALL_GATHER_INTO("allGatherInto"),
  /** Gathers several tensors at once. */
  ALL_GATHER_INTO_COALESCED("allGatherIntoCoalesced"),
  /** Gathers on one rank. */
  GATHER("gather"),
  /** Hands each rank one of the root's tensors. */
  SCATTER("scatter"),
  /** Reduces, and hands each rank its part. */
  REDUCE_SCATTER("reduceScatter"),
  /** Exchanges parts of one tensor between all ranks. */
  ALL_TO_ALL_SINGLE("allToAllSingle"),
  /** Exchanges tensors between all ranks. */
  ALL_TO_ALL("allToAll"),
  /** Sends to one peer. */
  SEND("send"),
  /** Receives from one peer. */
  RECV("recv"),
  /** Receives from whichever peer sends first. */
  RECV_ANY_SOURCE("recvAnySource"),
  /** Waits for all ranks. */
  BARRIER("barrier"),
  /** Reduces one tensor, and hands each rank its part. */
  REDUCE_SCATTER_INTO("reduceScatterInto"),
  /** Runs a batch of operations as one. */
  BATCH("batch"),
  /** Reduces a sparse tensor to all ranks. */
  ALL_REDUCE_SPARSE("allReduceSparse"),
  /** Waits for all ranks and names the missing ones. */
  MONITORED_BARRIER("monitoredBarrier"),
  /** Reduces and scatters several tensors at once. */
  REDUCE_SCATTER_INTO_COALESCED("reduceScatterIntoCoalesced"),
  /** Splits a group into new ones by color. */
  SPLIT("split"),
  /** Sets up a group. */
  INIT("init"),
  /** Closes a group. */
  CLOSE("close"),
  /** Allocates symmetric memory. */
  ALLOCATE_SYMMETRIC("allocateSymmetric"),
  /** Creates a group from some ranks of another. */
  SUBGROUP("subgroup"),
  /** Changes the members of a group. */
  RECONFIGURE("reconfigure"),
  /** Stands for anything else. */
  UNKNOWN("unknown");

  private final String label;

  OpType(String label) {
    this.label = label;
  }

  /** Returns the name of the method that users call. */
  public String label() {
    return label;
  }

  /** Returns whether the operation moves data between two ranks only. */
  public boolean isPointToPoint() {
    return this == SEND || this == RECV || this == RECV_ANY_SOURCE;
  }
}
