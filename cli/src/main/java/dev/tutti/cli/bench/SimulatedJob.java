package dev.tutti.cli.bench;

import dev.tutti.cli.process.Counts;
import dev.tutti.cli.simulate.Network;

/** The hosts on which a number of ranks runs. */
record SimulatedJob(int ranks, int hosts, Network network) {
  static SimulatedJob of(int ranks, Network network) {
    int each = network.hostRanks();
    if (ranks < 1 || (ranks > each && ranks % each != 0)) {
      throw new IllegalArgumentException(
          "--ranks must be from 1 to the "
              + each
              + " of a host, or a multiple of them, not "
              + ranks);
    }
    return new SimulatedJob(
        ranks, Math.max(1, ranks / each), network.withRanks(Math.min(ranks, each)));
  }

  String describe() {
    return Counts.of(ranks, "rank") + " on " + Counts.of(hosts, "host");
  }
}
