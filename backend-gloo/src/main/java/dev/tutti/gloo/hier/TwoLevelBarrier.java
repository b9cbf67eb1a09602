package dev.tutti.gloo.hier;

import dev.tutti.spi.Operation;

/**
 * Waits for the ranks of each host, then for the other hosts, then notifies the ranks of the host.
 *
 * <table>
 * <caption>Cost for H hosts</caption>
 * <tr><th>rounds in memory</th><th>steps between hosts</th></tr>
 * <tr><td>2</td><td>⌈log₂ H⌉</td></tr>
 * </table>
 */
record TwoLevelBarrier(IntraHostSteps host, InterHostAlgorithms interHost) {
  /** Returns when all ranks have called it. */
  void run(Operation op, int tag) throws Exception {
    host.agree(op);
    if (host.place() == 0) {
      interHost.with(0).barrier(op, tag);
    }
    host.agree(op);
  }
}
