package dev.tutti.cli.simulate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.tutti.OpType;
import dev.tutti.Settings;
import dev.tutti.cli.simulate.Fit.Sample;
import dev.tutti.runtime.settings.Providers;
import dev.tutti.spi.OperationPlan;
import dev.tutti.spi.PlanRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class FitTest {
  private static final Shares SHARES = new Shares(List.of(1.0, 1.1, 1.4, 2.0));
  private static final List<OpType> TYPES =
      List.of(OpType.ALL_REDUCE, OpType.BROADCAST, OpType.ALL_GATHER_INTO);

  /** Returns what 2 and 4 ranks would take, every second time longer and otherwise shorter. */
  private static List<Sample> samples(LinkCost memory, double error) {
    List<Sample> samples = new ArrayList<>();
    for (int ranks : new int[] {2, 4}) {
      for (long bytes = 1024; bytes <= 1 << 26; bytes *= 4) {
        for (OpType type : TYPES) {
          double factor = samples.size() % 2 == 0 ? 1 + error : 1 - error;
          PlanRequest request = request(type, bytes, ranks);
          samples.add(new Sample(request, plan(request), factor * seconds(memory, request)));
        }
      }
    }
    return samples;
  }

  private static PlanRequest request(OpType type, long bytes, int ranks) {
    return new PlanRequest(type, bytes, 1, ranks, 8, Settings.ofEnvironment(Map.of()));
  }

  private static OperationPlan plan(PlanRequest request) {
    return Providers.backends().get("gloo").plan(request).orElseThrow();
  }

  private static double seconds(LinkCost memory, PlanRequest request) {
    Network network = Network.ofHosts(request.ranks(), 8, memory, memory);
    return CostModel.cost(request, plan(request), network).seconds();
  }

  private static void assertTimes(LinkCost found, LinkCost expected, int ranks, double relative) {
    for (OpType type : TYPES) {
      for (long bytes = 1024; bytes <= 1 << 26; bytes *= 2) {
        PlanRequest request = request(type, bytes, ranks);
        assertThat(seconds(found, request) / seconds(expected, request))
            .as("%s of %s bytes on %s", type, bytes, ranks)
            .isCloseTo(1, within(relative));
      }
    }
  }

  @Test
  void moreRanksTakeWhatTheCostsOfFewSay() {
    LinkCost found = Fit.fit(samples(Networks.MEMORY, 0), Shares.NONE);
    assertTimes(found, Networks.MEMORY, 4, 0.01);
    assertTimes(found, Networks.MEMORY, 16, 0.05);
  }

  @Test
  void ratesThatDifferBySizeAreFound() {
    Curve caches =
        new Curve(
            List.of(
                0.1e-9, 0.1e-9, 0.1e-9, 0.1e-9, 0.1e-9, 0.15e-9, 0.2e-9, 0.4e-9, 0.4e-9, 0.4e-9));
    LinkCost truth = new LinkCost(1e-6, 0.2e-6, caches, caches, caches, SHARES);
    LinkCost found = Fit.fit(samples(truth, 0), SHARES);
    assertTimes(found, truth, 4, 0.02);
    assertTimes(found, truth, 8, 0.05);
  }

  @Test
  void timesThatVaryByTenPercentAreFittedThatWell() {
    assertTimes(Fit.fit(samples(Networks.MEMORY, 0.1), Shares.NONE), Networks.MEMORY, 4, 0.1);
  }

  @Test
  void sizesWithoutSamplesCostWhatTheirNeighborsDo() {
    List<Sample> small = samples(Networks.MEMORY, 0);
    small.removeIf(sample -> sample.request().bytes() > 65_536);
    Curve spread = Fit.fit(small, Shares.NONE).spread();
    assertThat(spread.at(1 << 28) / spread.at(65_536)).isCloseTo(1, within(0.01));
  }

  @Test
  void noCostIsNegative() {
    LinkCost found = Fit.fit(samples(Networks.link(1e-6, 0, 0, 0.1e-9, 0.05e-9), 0.1), Shares.NONE);
    assertThat(List.of(found.round(), found.each())).allMatch(value -> value >= 0);
    for (Curve curve : List.of(found.reduce(), found.spread(), found.gather())) {
      assertThat(curve.seconds()).allMatch(value -> value >= 0);
    }
  }

  @Test
  void withoutSamplesThereIsNothingToFit() {
    assertThatThrownBy(() -> Fit.fit(List.of(), Shares.NONE))
        .hasMessage("no samples to fit costs to");
  }
}
