package dev.tutti.gloo.hier;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gloo.algorithm.Reduction;
import dev.tutti.gloo.shm.Parts;
import dev.tutti.gloo.topology.HostGroups;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Reduces within each host, then between hosts, then spreads the result within each host. Between
 * hosts, only the leaders exchange a small tensor; for a large one, if all hosts have the same
 * number of ranks, each rank exchanges a part with the ranks at its place on the other hosts.
 *
 * <table>
 * <caption>Cost for H hosts of K ranks each and S bytes</caption>
 * <tr><th>tensor</th><th>rounds in memory</th><th>steps between hosts</th>
 *     <th>bytes sent by each host</th></tr>
 * <tr><td>small</td><td>2</td><td>those of an all-reduce among H ranks</td>
 *     <td>as its busiest rank</td></tr>
 * <tr><td>large</td><td>a reduce-scatter and an all-gather</td><td>those of an all-reduce of S / K
 *     bytes among H ranks, K at a time</td><td>2·S·(H−1)/H</td></tr>
 * </table>
 *
 * <p>All ranks get copies of results that were computed once between hosts, or identically on all
 * of them: all hold the same bits.
 */
final class TwoLevelAllReduce {
  /** The size in bytes from which all ranks take part in the exchange between hosts. */
  static final long PARTS_FROM = 64 * 1024;

  private final IntraHostSteps host;
  private final InterHostAlgorithms interHost;
  private final boolean even;
  private final long[] parts;

  TwoLevelAllReduce(HostGroups groups, IntraHostSteps host, InterHostAlgorithms interHost) {
    this.host = host;
    this.interHost = interHost;
    even = groups.areEven();
    parts = new long[host.size()];
  }

  /**
   * Reduces in place.
   *
   * @param reduceOp the operator, but not AVG
   */
  void run(Operation op, int tag, Tensor tensor, ReduceOp reduceOp) throws Exception {
    Reduction.before(reduceOp, tensor);
    if (even && tensor.byteSize() >= PARTS_FROM) {
      inParts(op, tag, tensor, reduceOp);
    } else {
      byLeaders(op, tag, tensor, reduceOp);
    }
  }

  private void byLeaders(Operation op, int tag, Tensor tensor, ReduceOp reduceOp) throws Exception {
    long bytes = tensor.byteSize();
    MemorySegment memory = tensor.segment();
    host.reduce(op, memory, bytes, tensor.dtype(), reduceOp.kind(), 0);
    if (host.place() == 0) {
      interHost.with(0).allReduce(op, tag, tensor, Reduction.between(reduceOp));
    }
    host.broadcast(op, memory, bytes, 0);
  }

  private void inParts(Operation op, int tag, Tensor tensor, ReduceOp reduceOp) throws Exception {
    long bytes = tensor.byteSize();
    long part = Parts.bytes(bytes, parts.length);
    for (int place = 0; place < parts.length; place++) {
      parts[place] = Math.max(0, Math.min(part, bytes - place * part));
    }
    MemorySegment memory = tensor.segment();
    host.reduceParts(op, memory, parts, tensor.dtype(), reduceOp.kind());
    long elementBytes = tensor.dtype().byteSize();
    long start = Math.min(bytes, host.place() * part);
    Tensor own =
        tensor.flatten().narrow(0, start / elementBytes, parts[host.place()] / elementBytes);
    interHost.column().allReduce(op, tag, own, Reduction.between(reduceOp));
    host.gatherParts(op, memory, parts);
  }
}
