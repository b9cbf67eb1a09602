package dev.tutti.gloo.hier;

import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gloo.algorithm.Reduction;
import dev.tutti.gloo.algorithm.Scratch;
import dev.tutti.gloo.topology.HostGroups;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Reduces within each host, so that the rank at each place gets the parts for the ranks at that
 * place on all hosts, and then reduces among the ranks at each place. All hosts have the same
 * number of ranks.
 *
 * <table>
 * <caption>Cost for H hosts of K ranks each and B bytes of the result of each rank</caption>
 * <tr><th>rounds in memory</th><th>steps between hosts</th><th>bytes sent by each host</th></tr>
 * <tr><td>chunks of H·K·B</td><td>those of a reduce-scatter of H·B bytes among H ranks, K at a
 *     time</td><td>K·B·(H−1)</td></tr>
 * </table>
 *
 * <p>Without the first level each host would send K times as many bytes.
 */
final class TwoLevelReduceScatter {
  private final IntraHostSteps host;
  private final InterHostAlgorithms interHost;
  private final int[][] columns;
  private final long[] parts;
  private final Scratch scratch = new Scratch();

  TwoLevelReduceScatter(HostGroups groups, IntraHostSteps host, InterHostAlgorithms interHost) {
    this.host = host;
    this.interHost = interHost;
    columns = new int[host.size()][];
    Arrays.setAll(columns, groups::column);
    parts = new long[columns.length];
  }

  /**
   * Reduces each part onto its rank.
   *
   * @param output receives this rank's part of the result, contiguous
   * @param inputs the parts, in rank order, contiguous; left unchanged
   * @param reduceOp the operator, but not AVG
   */
  void run(Operation op, int tag, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    long numel = inputs.stream().mapToLong(Tensor::numel).sum();
    if (numel == 0) {
      host.agree(op);
      return;
    }
    long bytes = numel * output.dtype().byteSize();
    MemorySegment memory = scratch.atLeast(bytes);
    Tensor all = Tensor.wrap(memory.asSlice(0, bytes), output.dtype(), numel);
    List<Tensor> own = new ArrayList<>();
    long at = 0;
    for (int place = 0; place < columns.length; place++) {
      parts[place] = 0;
      for (int rank : columns[place]) {
        Tensor part = all.narrow(0, at, inputs.get(rank).numel());
        part.copyFrom(inputs.get(rank).flatten());
        parts[place] += part.byteSize();
        at += part.numel();
        if (place == host.place()) {
          own.add(part);
        }
      }
    }
    Reduction.before(reduceOp, all);
    host.reduceParts(op, memory, parts, output.dtype(), reduceOp.kind());
    interHost.column().reduceScatter(op, tag, output, own, Reduction.between(reduceOp));
  }
}
