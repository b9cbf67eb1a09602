package dev.tutti.cli.simulate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.tutti.cli.simulate.Fit.Sample;
import dev.tutti.spi.OperationPlan;
import dev.tutti.spi.OperationPlan.Step;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class FitTest {
  private static List<Sample> samples(LinkCost memory, double error) {
    List<Sample> samples = new ArrayList<>();
    for (int ranks : new int[] {2, 4}) {
      for (double bytes = 1024; bytes <= 1 << 26; bytes *= 4) {
        for (int reduces = 0; reduces < 2; reduces++) {
          Step step =
              Step.memory(1 + Math.floor(bytes / 262_144), 2.0 * bytes).reducing(reduces * bytes);
          OperationPlan plan = new OperationPlan("", List.of(step));
          Network network = Network.ofHosts(ranks, 8, memory, memory);
          double seconds = CostModel.cost(plan, network, 1).seconds();
          double factor = samples.size() / 2 % 2 == 0 ? 1 + error : 1 - error;
          samples.add(new Sample(plan, ranks, seconds * factor));
        }
      }
    }
    return samples;
  }

  private static void assertClose(LinkCost found, LinkCost expected, double relative) {
    assertThat(found.round()).isCloseTo(expected.round(), within(relative * expected.round()));
    assertThat(found.each()).isCloseTo(expected.each(), within(relative * expected.each()));
    assertThat(found.rank()).isCloseTo(expected.rank(), within(relative * expected.rank()));
    assertThat(found.host()).isCloseTo(expected.host(), within(relative * expected.host()));
    assertThat(found.reduce()).isCloseTo(expected.reduce(), within(relative * expected.reduce()));
  }

  @Test
  void findsTheCostsThatMadeTheTimes() {
    assertClose(Fit.fit(samples(Networks.MEMORY, 0), 8), Networks.MEMORY, 1e-6);
  }

  @Test
  void noCostIsNegative() {
    LinkCost truth = new LinkCost(1e-6, 0, 0.1e-9, 0, 0.05e-9);
    LinkCost found = Fit.fit(samples(truth, 0.1), 8);
    assertThat(List.of(found.round(), found.each(), found.rank(), found.host()))
        .allMatch(value -> value >= 0);
  }

  @Test
  void timesThatVaryByTenPercentAreFittedThatWell() {
    LinkCost found = Fit.fit(samples(Networks.MEMORY, 0.1), 8);
    for (Sample sample : samples(Networks.MEMORY, 0)) {
      Network network = Network.ofHosts(sample.ranks(), 8, found, found);
      double model = CostModel.cost(sample.plan(), network, 1).seconds();
      assertThat(model / sample.seconds()).isCloseTo(1, within(0.1));
    }
  }

  @Test
  void withoutSamplesThereIsNothingToFit() {
    assertThatThrownBy(() -> Fit.fit(List.of(), 8)).hasMessage("no samples to fit costs to");
  }
}
