package dev.tutti.gloo.hier;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gloo.algorithm.Reduction;
import dev.tutti.gloo.topology.HostGroups;
import dev.tutti.spi.Operation;

/**
 * Reduces within each host to its leader, or to the root, and then from those ranks to the root.
 * The tensors of the other ranks are left with partial results.
 *
 * <table>
 * <caption>Cost for H hosts and S bytes</caption>
 * <tr><th>rounds in memory</th><th>steps between hosts</th><th>bytes sent by each host</th></tr>
 * <tr><td>1, or chunks + 1 above 8 KiB</td><td>those of a reduce among H ranks</td>
 *     <td>as its busiest rank</td></tr>
 * </table>
 */
record TwoLevelReduce(HostGroups groups, IntraHostSteps host, InterHostAlgorithms interHost) {
  /**
   * Reduces into the root's tensor.
   *
   * @param reduceOp the operator, but not AVG
   * @param root a rank of the group
   */
  void run(Operation op, int tag, Tensor tensor, ReduceOp reduceOp, int root) throws Exception {
    Reduction.before(reduceOp, tensor);
    host.reduce(
        op,
        tensor.segment(),
        tensor.byteSize(),
        tensor.dtype(),
        reduceOp.kind(),
        interHost.placeOfBridge(root));
    if (interHost.isBridge(root)) {
      interHost
          .with(root)
          .reduce(op, tag, tensor, Reduction.between(reduceOp), groups.hostOf(root));
    }
  }
}
