package dev.tutti.gloo.hier;

import dev.tutti.gloo.algorithm.Flow;
import dev.tutti.gloo.algorithm.TensorParts;
import dev.tutti.gloo.topology.HostGroups;
import dev.tutti.gloo.transport.Request;
import dev.tutti.gloo.transport.Slot;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.spi.Operation;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Gathers parts: each rank sends its own part to one rank of every other host; the ranks of a host,
 * having received different parts, then spread them among themselves.
 *
 * <table>
 * <caption>Cost for H hosts of K ranks each and B bytes of each rank</caption>
 * <tr><th>rounds in memory</th><th>steps between hosts</th><th>bytes sent by each rank</th></tr>
 * <tr><td>chunks of H·B</td><td>1</td><td>B·(H−1)</td></tr>
 * </table>
 *
 * <p>Every part thus reaches every host once, whatever ranks the host has and however many.
 */
final class TwoLevelAllGather {
  private final IntraHostSteps host;
  private final Transport transport;
  private final int[] receivers;
  private final int[][] held;
  private final @Nullable Request[] requests;

  TwoLevelAllGather(HostGroups groups, IntraHostSteps host, Transport transport) {
    this.host = host;
    this.transport = transport;
    int rank = transport.rank();
    int own = groups.hostOf(rank);
    receivers =
        IntStream.range(0, groups.hosts())
            .filter(each -> each != own)
            .map(each -> receiver(groups, rank, each))
            .toArray();
    held = new int[host.size()][];
    for (int place = 0; place < held.length; place++) {
      int holder = groups.ranksOf(own)[place];
      held[place] =
          IntStream.range(0, groups.size())
              .filter(part -> part == holder || receiver(groups, part, own) == holder)
              .toArray();
    }
    requests = new @Nullable Request[receivers.length + held[host.place()].length];
  }

  /**
   * Returns the rank on a host to which a part is sent; on the host that already has the part, that
   * is the part's own rank.
   */
  private static int receiver(HostGroups groups, int part, int host) {
    return groups.hostOf(part) == host
        ? part
        : groups.ranksOf(host)[groups.placeOf(part) % groups.countOf(host)];
  }

  /**
   * Gathers into parts of which this rank's already holds its data.
   *
   * @param parts the parts, whose sizes are the same on all ranks
   */
  void run(Operation op, int tag, TensorParts parts) throws Exception {
    int rank = transport.rank();
    long slot = Slot.ALL_GATHER.of(tag);
    int count = 0;
    for (int part : held[host.place()]) {
      if (part != rank) {
        requests[count++] =
            transport.receive(
                part, slot, parts.memory(part), parts.offset(part), parts.bytes(part));
      }
    }
    for (int receiver : receivers) {
      requests[count++] =
          transport.send(receiver, slot, parts.memory(rank), parts.offset(rank), parts.bytes(rank));
    }
    Flow.awaitAll(transport, op, requests);
    transport.flush();
    if (parts.longest() == 0) {
      host.agree(op);
    }
    host.spread(op, parts, held);
  }
}
