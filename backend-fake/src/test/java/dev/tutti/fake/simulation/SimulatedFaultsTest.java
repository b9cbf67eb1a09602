package dev.tutti.fake.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CollectiveException;
import dev.tutti.Tensor;
import dev.tutti.fake.RankBody;
import dev.tutti.fake.simulation.FaultPlan.Fault;
import dev.tutti.fake.simulation.SimulatedWorld.Outcome;
import dev.tutti.fake.simulation.SimulatedWorld.RankEnd;
import java.time.Duration;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests, under random faults, that ranks agree which of them failed. {@code -Dtutti.seeds=50000}
 * sets how many worlds each test makes, {@code -Dtutti.firstSeed=…} with which seed it begins.
 */
@Isolated("threads of other tests in shared locks would bring in real time")
class SimulatedFaultsTest {
  private static final int SEEDS = Integer.getInteger("tutti.seeds", 100);
  private static final int FIRST = Integer.getInteger("tutti.firstSeed", 0);

  /** What a rank says that is cut off from the store, and so cannot agree with others. */
  private static final String ALONE = "the store does not answer, so no rank can be asked";

  private static final RankBody STEPS =
      group -> {
        for (int step = 0; step < 60; step++) {
          SimulatedWorld.sleep(Duration.ofMillis(200));
          Tensor tensor = Tensor.of(group.rank() + 1f);
          group.allReduce(tensor);
          assertThat(tensor.toFloatArray()).containsExactly(group.size() * (group.size() + 1) / 2f);
        }
      };

  @BeforeAll
  static void warmUp() {
    Outcome _ = SimulatedWorld.of(3).run(STEPS);
  }

  private static SimulatedWorld world(long seed, int size) {
    return SimulatedWorld.of(size)
        .withSeed(seed)
        .withTimeout(Duration.ofSeconds(4))
        .withFaults(FaultPlan.random(new SplittableRandom(seed), size, 2, Duration.ofSeconds(12)));
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 5})
  void ranksAgreeWhoFailed(int size) {
    for (long seed = FIRST; seed < FIRST + SEEDS; seed++) {
      SimulatedWorld world = world(seed, size);
      Outcome outcome = world.run(STEPS);
      Set<String> verdicts =
          outcome.ends().stream()
              .filter(end -> !end.crashed() && !isAlone(end))
              .map(SimulatedFaultsTest::verdict)
              .collect(Collectors.toSet());
      assertThat(verdicts)
          .as("seed %d of %d ranks, %s: %s", seed, size, world.plan(), outcome.ends())
          .hasSizeLessThanOrEqualTo(1);
      assertThat(verdicts)
          .as("seed %d of %d ranks, %s", seed, size, world.plan())
          .isSubsetOf(possible(world.plan()));
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {3})
  void aSeedRepeatsWhatWentWrong(int size) {
    for (long seed = FIRST; seed < FIRST + SEEDS / 4; seed++) {
      SimulatedWorld world = world(seed, size);
      Outcome first = world.run(STEPS);
      Outcome second = world.run(STEPS);
      assertThat(second.hash()).as("seed %d", seed).isEqualTo(first.hash());
      assertThat(second.toString()).as("seed %d", seed).isEqualTo(first.toString());
    }
  }

  private static boolean isAlone(RankEnd end) {
    Throwable failure = end.failure();
    return failure != null && String.valueOf(failure.getMessage()).contains(ALONE);
  }

  /** Returns whom a rank names, or how else it ended. */
  private static String verdict(RankEnd end) {
    return switch (end.failure()) {
      case null -> "done";
      case CollectiveException e ->
          e.failedRank().isPresent() ? "rank " + e.failedRank().getAsInt() : "nobody";
      case Throwable other -> other.toString();
    };
  }

  /** Returns the verdicts that are right: only a rank to which something happened is named. */
  private static Set<String> possible(FaultPlan plan) {
    Set<String> possible =
        plan.faults().stream()
            .map(Fault::rank)
            .map(rank -> "rank " + rank)
            .collect(Collectors.toSet());
    possible.add("done");
    possible.add("nobody");
    return possible;
  }
}
