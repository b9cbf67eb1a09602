package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.GroupOptions;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.fake.simulation.SimulatedHost;
import dev.tutti.fake.simulation.Simulation;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.FutureTask;

/** Runs the ranks of Gloo groups on simulated hosts, each on one of its own. */
final class RanksOnHosts {
  /** The timeout of a group. */
  static final Duration TIMEOUT = Duration.ofMinutes(2);

  private RanksOnHosts() {}

  /**
   * Runs a body on a thread of each host, and checks that no channel is left.
   *
   * @param store the store, used by all ranks
   * @param body gets the options to join
   * @return the results in rank order
   */
  static <T> List<T> run(int size, Store store, Simulation.RankBody<T> body) throws Exception {
    List<SimulatedHost> hosts = new ArrayList<>();
    List<FutureTask<T>> ranks = new ArrayList<>();
    for (int i = 0; i < size; i++) {
      int rank = i;
      SimulatedHost host = SimulatedHost.current().newHost("rank " + rank);
      hosts.add(host);
      GroupOptions options = options(host, store, rank, size, Map.of());
      FutureTask<T> task = new FutureTask<>(() -> body.run(options, rank));
      ranks.add(task);
      Thread _ = host.time().start("rank " + rank, task);
    }
    List<T> results = new ArrayList<>();
    for (FutureTask<T> rank : ranks) {
      results.add(rank.get());
    }
    assertThat(hosts).allSatisfy(host -> assertThat(host.openChannels()).isZero());
    return results;
  }

  /** Returns the options of a rank that shares no memory, unless further settings say so. */
  static GroupOptions options(
      SimulatedHost host, Store store, int rank, int size, Map<String, String> settings) {
    Map<String, String> all = new HashMap<>();
    all.put(GlooProvider.SHARED_BYTES.name(), "0");
    all.put(GlooProvider.SPIN.name(), "0");
    all.putAll(settings);
    return GroupOptions.DEFAULT
        .withStore(store)
        .withRank(rank)
        .withSize(size)
        .withTime(host.time())
        .withProvider(new GlooProvider(host.channels(), host.address()))
        .withSettings(Settings.ofEnvironment(all))
        .withTimeout(TIMEOUT);
  }
}
