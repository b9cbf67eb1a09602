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
import java.util.function.IntFunction;

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
  private final int size;
  private final int[][] columns;
  private final long[] parts;
  private final Scratch scratch = new Scratch();

  TwoLevelReduceScatter(HostGroups groups, IntraHostSteps host, InterHostAlgorithms interHost) {
    this.host = host;
    this.interHost = interHost;
    size = groups.size();
    columns = new int[host.size()][];
    Arrays.setAll(columns, groups::column);
    parts = new long[columns.length];
  }

  /**
   * Reduces each part onto its rank.
   *
   * @param op carries the deadline
   * @param tag the number of the collective
   * @param output receives this rank's part of the result, contiguous
   * @param inputs the parts, in rank order, contiguous; left unchanged
   * @param reduceOp the operator, but not AVG
   * @throws Exception if a wait fails
   */
  void run(Operation op, int tag, Tensor output, IntFunction<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    long bytes = output.byteSize();
    if (bytes == 0) {
      host.agree(op);
      return;
    }
    MemorySegment memory = scratch.atLeast(bytes * size);
    Tensor all =
        Tensor.wrap(memory.asSlice(0, bytes * size), output.dtype(), output.numel() * size);
    long at = 0;
    for (int[] column : columns) {
      for (int rank : column) {
        MemorySegment.copy(inputs.apply(rank).segment(), 0, memory, at, bytes);
        at += bytes;
      }
    }
    Reduction.before(reduceOp, all);
    int hosts = columns[0].length;
    Arrays.fill(parts, bytes * hosts);
    host.reduceParts(op, memory, parts, output.dtype(), reduceOp.kind());
    List<Tensor> own = new ArrayList<>(hosts);
    for (int h = 0; h < hosts; h++) {
      long first = ((long) host.place() * hosts + h) * output.numel();
      own.add(all.narrow(0, first, output.numel()));
    }
    interHost.column().reduceScatter(op, tag, output, own, Reduction.between(reduceOp));
  }
}
