package dev.tutti.contracts;

import dev.tutti.CallOptions;
import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/** One call of each operation, with valid arguments. */
final class GoodCalls {
  private final Map<OpType, Refusals.Call> calls = new EnumMap<>(OpType.class);

  /** Creates calls in which each rank is the root. */
  GoodCalls(Member member) {
    this(member, member.rank(), member.rank());
  }

  /**
   * Creates calls.
   *
   * @param giver the root of operations that start from one rank, and the peer of a receive
   * @param taker the root of operations that end at one rank
   */
  GoodCalls(Member member, int giver, int taker) {
    ProcessGroup group = member.group();
    int peer = giver == member.rank() ? member.next() : giver;
    Tensor one = member.scratch(DType.FLOAT32, 1);
    Tensor all = member.scratch(DType.FLOAT32, member.size());
    Tensor places = member.scratch(DType.INT64, 1, 1);
    List<Tensor> list = new ArrayList<>();
    List<Tensor> others = new ArrayList<>();
    for (int rank = 0; rank < member.size(); rank++) {
      list.add(member.scratch(DType.FLOAT32, 1));
      others.add(member.scratch(DType.FLOAT32, 1));
    }
    Tensor allOthers = member.scratch(DType.FLOAT32, member.size());
    ReduceOp sum = ReduceOp.SUM;
    calls.put(OpType.BROADCAST, () -> group.broadcast(one, giver));
    calls.put(OpType.ALL_REDUCE, () -> group.allReduce(one));
    calls.put(
        OpType.ALL_REDUCE_COALESCED,
        () -> group.allReduceCoalesced(List.of(one), ReduceOp.SUM, CallOptions.DEFAULT));
    calls.put(
        OpType.ALL_REDUCE_SPARSE,
        () -> group.allReduce(Tensor.sparse(places, one, 5), ReduceOp.SUM, CallOptions.DEFAULT));
    calls.put(OpType.REDUCE, () -> group.reduce(one, sum, taker));
    calls.put(OpType.ALL_GATHER, () -> group.allGather(list, one));
    calls.put(OpType.ALL_GATHER_INTO, () -> group.allGatherInto(all, one));
    calls.put(
        OpType.ALL_GATHER_INTO_COALESCED,
        () -> group.allGatherIntoCoalesced(List.of(all), List.of(one), CallOptions.DEFAULT));
    calls.put(
        OpType.GATHER, () -> group.gather(taker == member.rank() ? list : List.of(), one, taker));
    calls.put(
        OpType.SCATTER, () -> group.scatter(one, giver == member.rank() ? list : List.of(), giver));
    calls.put(OpType.REDUCE_SCATTER, () -> group.reduceScatter(one, list, sum));
    calls.put(OpType.REDUCE_SCATTER_INTO, () -> group.reduceScatterInto(one, all, sum));
    calls.put(
        OpType.REDUCE_SCATTER_INTO_COALESCED,
        () ->
            group.reduceScatterIntoCoalesced(
                List.of(one), List.of(all), ReduceOp.SUM, CallOptions.DEFAULT));
    calls.put(OpType.ALL_TO_ALL, () -> group.allToAll(list, others));
    calls.put(OpType.ALL_TO_ALL_SINGLE, () -> group.allToAllSingle(all, allOthers));
    calls.put(OpType.BARRIER, () -> group.barrier());
    calls.put(OpType.SEND, () -> group.send(one, peer));
    calls.put(OpType.RECV, () -> group.recv(one, peer));
    calls.put(OpType.RECV_ANY_SOURCE, () -> group.recvAnySource(one));
    calls.put(OpType.ALLOCATE_SYMMETRIC, () -> group.allocateSymmetric(8));
  }

  /** Returns the operations that a backend declares. */
  static List<OpType> declared(Capabilities capabilities) {
    List<OpType> declared = new ArrayList<>();
    for (OpType op : OpType.values()) {
      boolean has =
          op == OpType.ALLOCATE_SYMMETRIC
              ? capabilities.has(Feature.SYMMETRIC_MEMORY)
              : capabilities.has(op) && op != OpType.MONITORED_BARRIER;
      if (has) {
        declared.add(op);
      }
    }
    return declared;
  }

  /** Returns the call of an operation. */
  Refusals.Call of(OpType op) {
    Refusals.Call call = calls.get(op);
    if (call == null) {
      throw new AssertionError("the suite has no call of " + op.label());
    }
    return call;
  }
}
