package dev.tutti.gloo.hier;

import dev.tutti.gloo.topology.HostGroups;
import dev.tutti.spi.Operation;
import java.lang.foreign.MemorySegment;

/**
 * Copies the root's bytes to the leaders of the other hosts, and then to all ranks within each
 * host.
 *
 * <table>
 * <caption>Cost for H hosts and S bytes</caption>
 * <tr><th>rounds in memory</th><th>steps between hosts</th><th>bytes sent by each host</th></tr>
 * <tr><td>1, and chunks above 8 KiB</td><td>those of a broadcast among H ranks</td>
 *     <td>as its busiest rank</td></tr>
 * </table>
 */
record TwoLevelBroadcast(HostGroups groups, IntraHostSteps host, InterHostAlgorithms interHost) {
  /**
   * Sends the root's bytes to all ranks, or receives them.
   *
   * @param memory the bytes
   * @param root a rank of the group
   */
  void run(Operation op, int tag, MemorySegment memory, long bytes, int root) throws Exception {
    if (interHost.isBridge(root)) {
      interHost.with(root).broadcast(op, tag, memory, bytes, groups.hostOf(root));
    }
    host.broadcast(op, memory, bytes, interHost.placeOfBridge(root));
  }
}
