package dev.tutti.cli.simulate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.tutti.OpType;
import dev.tutti.Settings;
import dev.tutti.runtime.settings.Providers;
import dev.tutti.spi.OperationPlan;
import dev.tutti.spi.OperationPlan.Step;
import dev.tutti.spi.PlanRequest;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class CostModelTest {
  private static final Settings SETTINGS = Settings.ofEnvironment(Map.of());

  private static Cost cost(Network network, int hosts, Step... steps) {
    PlanRequest request = request(OpType.ALL_REDUCE, 1 << 20, hosts, network);
    return CostModel.cost(request, new OperationPlan("", List.of(steps)), network);
  }

  private static Cost cost(OpType type, long bytes, int hosts, Network network) {
    PlanRequest request = request(type, bytes, hosts, network);
    OperationPlan plan = Providers.backends().get("gloo").plan(request).orElseThrow();
    return CostModel.cost(request, plan, network);
  }

  private static PlanRequest request(OpType type, long bytes, int hosts, Network network) {
    return new PlanRequest(type, bytes, hosts, network.hostRanks(), network.hostCores(), SETTINGS);
  }

  private static void assertMicros(double seconds, double micros) {
    assertThat(seconds * 1e6).isCloseTo(micros, within(1e-6));
  }

  @Test
  void nothingCostsNothing() {
    Cost cost = cost(Networks.of(1, 1), 1);
    assertThat(cost.seconds()).isZero();
    assertThat(cost.share(cost.bound())).isZero();
  }

  @Test
  void roundsInMemoryWaitForAllRanks() {
    Cost cost = cost(Networks.of(4, 8), 1, Step.memory(3, 60_000).reducing(20_000));
    // 3 rounds of 1 + 4 * 0.5 µs; 60,000 bytes moved and as many reduced at 0.05 ns.
    assertMicros(cost.of(Resource.ROUNDS), 9);
    assertMicros(cost.of(Resource.MEMORY), 3);
    assertMicros(cost.of(Resource.REDUCTION), 3);
    assertMicros(cost.seconds(), 15);
    assertThat(cost.bound()).isEqualTo(Resource.ROUNDS);
    assertThat(cost.share(Resource.ROUNDS)).isEqualTo(0.6, within(1e-9));
  }

  @Test
  void messagesWithinAHostCostATripTheirWorkAndTheirBytes() {
    Cost cost = cost(Networks.of(2, 8), 1, Step.network(1, 4, 3, 1000));
    // 4 trips of 10 µs; 12 messages of 2 µs; 12,000 bytes at 0.5 ns.
    assertMicros(cost.of(Resource.LATENCY), 40);
    assertMicros(cost.of(Resource.MESSAGES), 24);
    assertMicros(cost.of(Resource.SOCKETS), 6);
    assertMicros(cost.seconds(), 70);
  }

  @Test
  void theInterfaceOfAHostIsSharedByTheRanksThatSend() {
    Cost one = cost(Networks.of(4, 8), 2, Step.network(1, 1, 1, 1000).among(4, 1));
    assertMicros(one.of(Resource.LATENCY), 15);
    assertMicros(one.of(Resource.NIC), 1);
    Cost four = cost(Networks.of(4, 8), 2, Step.network(1, 1, 1, 1000).among(4, 4));
    assertMicros(four.of(Resource.NIC), 4);
    assertThat(four.of(Resource.SOCKETS)).isZero();
  }

  @Test
  void theSpineIsNarrowForThoseWhoseNeighborsAreFar() {
    Network network = Networks.of(1, 8);
    // Neighbors: one host of each rack of 4 sends up a link of 4 / 2 GB/s.
    Cost near = cost(network, 16, Step.network(1, 1, 1, 1000));
    assertMicros(near.of(Resource.LATENCY), 18);
    assertMicros(near.of(Resource.NIC), 1);
    // All 4 hosts of each rack do.
    Cost far = cost(network, 16, Step.network(8, 1, 1, 1000));
    assertMicros(far.of(Resource.SPINE), 2);
    assertThat(far.of(Resource.NIC)).isZero();
    // Around the ring of 16, 15 is as near as 1.
    assertMicros(cost(network, 16, Step.network(15, 1, 1, 1000)).of(Resource.NIC), 1);
  }

  @Test
  void kernelsStartSendAndWaitForTrips() {
    Step step = Step.device(2, 100_000);
    Cost graph = cost(Networks.of(4, 8).inGraph(), 1, step);
    assertMicros(graph.of(Resource.LAUNCH), 1);
    assertMicros(graph.of(Resource.LATENCY), 4);
    assertMicros(graph.of(Resource.LINKS), 1);
    // Without a graph a kernel starts 3 µs later, but not before the host has made the next call.
    assertMicros(cost(Networks.of(4, 8), 1, step).seconds(), 9);
    assertMicros(cost(Networks.of(4, 8), 1, Step.device(1, 100)).seconds(), 8);
  }

  @Test
  void ranksThatShareACoreTakeTurns() {
    Step step = Step.network(1, 1, 1, 1000);
    double alone = cost(Networks.of(8, 8), 1, step).seconds();
    assertThat(cost(Networks.of(8, 2), 1, step).seconds()).isEqualTo(4 * alone, within(1e-12));
  }

  @ParameterizedTest
  @EnumSource(names = {"ALL_REDUCE", "BROADCAST", "ALL_GATHER_INTO", "REDUCE_SCATTER_INTO"})
  void oneAlgorithmTakesLongerForMoreBytes(OpType type) {
    // From 1 MiB of each part up, one algorithm serves all sizes but those beside a limit.
    for (int hosts : new int[] {1, 4, 64}) {
      double before = 0;
      for (long bytes = 1L << 28; bytes <= 1L << 34; bytes *= 2) {
        double seconds = cost(type, bytes, hosts, Networks.of(8, 8)).seconds();
        assertThat(seconds).as("%s of %s on %s", type, bytes, hosts).isGreaterThan(before);
        before = seconds;
      }
    }
  }

  @Test
  void oneRankWaitsForNothing() {
    for (long bytes : new long[] {0, 8, 1 << 20, 1L << 30}) {
      assertThat(cost(OpType.ALL_REDUCE, bytes, 1, Networks.of(1, 8)).seconds()).isZero();
    }
  }

  @Test
  void moreHostsTakeLonger() {
    double before = 0;
    for (int hosts = 2; hosts <= 1 << 17; hosts *= 2) {
      double seconds = cost(OpType.ALL_REDUCE, 1024, hosts, Networks.of(1, 8)).seconds();
      assertThat(seconds).isGreaterThan(before);
      before = seconds;
    }
  }

  /** Four hosts of one rank: halving and doubling of 1 MiB, by hand. */
  @Test
  void anAllReduceOnFourHostsIsTheSumOfItsSteps() {
    Cost cost = cost(OpType.ALL_REDUCE, 1 << 20, 4, Networks.of(1, 8));
    // A piece of 1 MiB; 4 steps, of 1/2, 1/4, 1/4 and 1/2 of it; the interface takes 1 ns a byte.
    assertMicros(cost.of(Resource.NIC), 1.5 * (1 << 20) / 1000);
    assertMicros(cost.of(Resource.REDUCTION), 0.75 * (1 << 20) * 0.5 / 1000);
    assertMicros(cost.of(Resource.LATENCY), 4 * 15);
    assertMicros(cost.of(Resource.MESSAGES), 4 * 2);
  }

  @Test
  void aHundredThousandRanksAreFiniteAndCostMoreThanAThousand() {
    Network network = Networks.of(8, 8);
    for (OpType type : List.of(OpType.ALL_REDUCE, OpType.ALL_GATHER_INTO, OpType.BARRIER)) {
      double many = cost(type, 1L << 30, 12_500, network).seconds();
      assertThat(many).isFinite();
      assertThat(many).isGreaterThan(cost(type, 1L << 30, 125, network).seconds());
    }
  }
}
