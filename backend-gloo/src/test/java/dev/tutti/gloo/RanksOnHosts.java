package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.Tensor;
import dev.tutti.fake.simulation.SimulatedHost;
import dev.tutti.fake.simulation.Simulation;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;

/**
 * The ranks of a Gloo group on simulated hosts, each on one of its own; they share no memory.
 *
 * @param hosts the hosts in rank order
 * @param tasks what the ranks run
 */
public record RanksOnHosts<T>(List<SimulatedHost> hosts, List<FutureTask<T>> tasks) {
  private static final Duration TIMEOUT = Duration.ofMinutes(2);

  /** What a rank does with its group. */
  public interface Body<T> {
    T run(ProcessGroup group) throws Exception;
  }

  /**
   * Starts a thread of each rank.
   *
   * @param size the number of ranks
   * @param store the store, used by all ranks
   * @param body what each rank runs with the options to join
   */
  public static <T> RanksOnHosts<T> start(int size, Store store, Simulation.RankBody<T> body) {
    List<SimulatedHost> hosts = new ArrayList<>();
    List<FutureTask<T>> tasks = new ArrayList<>();
    for (int i = 0; i < size; i++) {
      int rank = i;
      SimulatedHost host = SimulatedHost.current().newHost("rank " + rank);
      GroupOptions options = options(host, store, rank, size);
      FutureTask<T> task = new FutureTask<>(() -> body.run(options, rank));
      hosts.add(host);
      tasks.add(task);
      Thread _ = host.time().start("rank " + rank, task);
    }
    return new RanksOnHosts<>(hosts, tasks);
  }

  /**
   * Starts a thread of each rank, whose body begins once all ranks have reduced: a failure would
   * also end that operation on a rank that has not left it yet.
   */
  public static <T> RanksOnHosts<T> startReduced(int size, Body<T> body) {
    CountDownLatch through = new CountDownLatch(size);
    return start(
        size,
        Simulation.store(),
        (options, _) -> {
          try (ProcessGroup group = ProcessGroup.init(options)) {
            group.allReduce(Tensor.of(1f));
            Simulation.endTogether(through);
            return body.run(group);
          }
        });
  }

  /** Runs a body on all ranks; returns the results in rank order. */
  public static <T> List<T> run(int size, Store store, Simulation.RankBody<T> body)
      throws Exception {
    return start(size, store, body).end(size);
  }

  private static GroupOptions options(SimulatedHost host, Store store, int rank, int size) {
    return GroupOptions.DEFAULT
        .withStore(store)
        .withRank(rank)
        .withSize(size)
        .withTime(host.time())
        .withProvider(new GlooProvider(host.channels(), host.address()))
        .withSettings(
            Settings.ofEnvironment(
                Map.of(GlooProvider.SHARED_BYTES.name(), "0", GlooProvider.SPIN.name(), "0")))
        .withTimeout(TIMEOUT);
  }

  /** Returns the results of the first ranks, and checks that no rank has left a channel open. */
  public List<T> end(int count) throws Exception {
    List<T> results = new ArrayList<>();
    for (FutureTask<T> task : tasks.subList(0, count)) {
      results.add(task.get());
    }
    assertThat(hosts).allSatisfy(host -> assertThat(host.openChannels()).isZero());
    return results;
  }
}
