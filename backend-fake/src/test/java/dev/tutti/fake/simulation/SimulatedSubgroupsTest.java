package dev.tutti.fake.simulation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CollectiveException;
import dev.tutti.MissingRanks;
import dev.tutti.ProcessGroup;
import dev.tutti.SubgroupOptions;
import dev.tutti.Tensor;
import dev.tutti.fake.RankBody;
import dev.tutti.fake.simulation.FaultPlan.Fault;
import dev.tutti.fake.simulation.FaultPlan.Kind;
import dev.tutti.fake.simulation.SimulatedWorld.Outcome;
import dev.tutti.fake.simulation.SimulatedWorld.RankEnd;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/**
 * Tests, in random orders, that closed groups leave no keys, and that nobody misses a key. {@code
 * -Dtutti.seeds=50000} sets how many worlds each test makes, {@code -Dtutti.firstSeed=…} with which
 * seed it begins.
 */
@Isolated("threads of other tests in shared locks would bring in real time")
class SimulatedSubgroupsTest {
  private static final SubgroupOptions LOCAL = SubgroupOptions.DEFAULT.withLocalSynchronization();
  private static final int SEEDS = Integer.getInteger("tutti.seeds", 100);
  private static final int FIRST = Integer.getInteger("tutti.firstSeed", 0);

  @BeforeAll
  static void warmUp() {
    Outcome _ = SimulatedWorld.of(3).run(group -> use(group.split(0, 0)));
  }

  private static void requireAllDone(Outcome outcome, long seed) {
    assertThat(outcome.ends())
        .as("seed %d", seed)
        .hasSize(3)
        .extracting(RankEnd::failure)
        .containsOnlyNulls();
  }

  /** Adds up in a group if this rank is in it, and closes it. */
  private static void use(Optional<ProcessGroup> made) {
    made.ifPresent(
        group -> {
          Tensor tensor = Tensor.of(1f);
          group.allReduce(tensor);
          assertThat(tensor.toFloatArray()).containsExactly(group.size());
          group.close();
        });
  }

  private static void pause(SplittableRandom random) {
    SimulatedWorld.sleep(Duration.ofNanos(random.nextLong(20_000_000)));
  }

  /** Counts the keys of all groups while no rank changes any. */
  private static long keys(ProcessGroup group) {
    group.barrier();
    long count = group.store().keyCount();
    group.barrier();
    return count;
  }

  /** Makes and closes groups of all kinds, each rank at its own pace. */
  private static RankBody makeAndClose(long seed) {
    return group -> {
      SplittableRandom random = new SplittableRandom(31 * seed + group.rank());
      SplittableRandom common = new SplittableRandom(seed);
      long before = keys(group);
      for (int i = 0; i < 6; i++) {
        List<Integer> ranks =
            List.of(List.of(0, 1), List.of(1, 2), List.of(0, 1, 2), List.of(2))
                .get(common.nextInt(4));
        switch (common.nextInt(5)) {
          case 0 -> use(group.split(group.rank() % 2, -group.rank()));
          case 1 -> use(group.split(group.rank() == 1 ? -1 : 3, 0));
          case 2 -> {
            try (ProcessGroup half = group.split(0, 0).orElseThrow()) {
              half.monitoredBarrier(Duration.ofSeconds(10), MissingRanks.ALL);
              half.monitoredBarrier(Duration.ofSeconds(10), MissingRanks.ALL);
              use(half.subgroup(ranks));
              pause(random);
              // Closed with the group above.
              Optional<ProcessGroup> _ = half.subgroup(ranks);
            }
          }
          case 3 -> use(group.subgroup(ranks, LOCAL));
          default -> use(group.subgroup(ranks));
        }
        pause(random);
      }
      assertThat(keys(group)).as("keys on rank %d", group.rank()).isEqualTo(before);
    };
  }

  @Test
  void closedGroupsLeaveNoKeysInAnyOrder() {
    for (long seed = FIRST; seed < FIRST + SEEDS; seed++) {
      requireAllDone(SimulatedWorld.of(3).withSeed(seed).run(makeAndClose(seed)), seed);
    }
  }

  @Test
  void aLateRankStillFindsWhatItsPeersWroteWhoHaveClosed() {
    for (long seed = FIRST; seed < FIRST + SEEDS; seed++) {
      Outcome outcome =
          SimulatedWorld.of(3)
              .withSeed(seed)
              .run(
                  group -> {
                    long before = keys(group);
                    if (group.rank() == 2) {
                      SimulatedWorld.sleep(Duration.ofSeconds(5));
                    }
                    use(group.subgroup(List.of(0, 1)));
                    use(group.split(group.rank() == 2 ? -1 : 0, 0));
                    if (group.rank() == 2) {
                      SimulatedWorld.sleep(Duration.ofSeconds(5));
                    }
                    assertThat(keys(group)).isEqualTo(before);
                  });
      requireAllDone(outcome, seed);
    }
  }

  @Test
  void aLateRankWithAnotherListIsRefusedAlthoughTheGroupIsClosed() {
    for (long seed = FIRST; seed < FIRST + SEEDS; seed++) {
      Outcome outcome =
          SimulatedWorld.of(3)
              .withSeed(seed)
              .run(
                  group -> {
                    if (group.rank() < 2) {
                      use(group.subgroup(List.of(0, 1)));
                      return;
                    }
                    SimulatedWorld.sleep(Duration.ofSeconds(1));
                    assertThatThrownBy(() -> group.subgroup(List.of(1, 2)))
                        .isInstanceOf(CollectiveException.class)
                        .hasMessageMatching("(?s).*rank [01] gave 0, 1, but rank 2 gave 1, 2.*");
                  });
      requireAllDone(outcome, seed);
    }
  }

  @Test
  void aGroupThatARankKeepsOpenKeepsItsKeys() {
    Outcome outcome =
        SimulatedWorld.of(3)
            .run(
                group -> {
                  long before = keys(group);
                  ProcessGroup made = group.split(0, 0).orElseThrow();
                  long open = keys(group);
                  if (group.rank() > 0) {
                    made.close();
                  }
                  assertThat(keys(group)).isGreaterThanOrEqualTo(open);
                  made.close();
                  assertThat(keys(group)).isEqualTo(before);
                });
    requireAllDone(outcome, 0);
  }

  @Test
  void membersNeedNeitherTheOthersNorOneOrderOfDisjointGroups() {
    for (long seed = FIRST; seed < FIRST + SEEDS / 4; seed++) {
      SplittableRandom random = new SplittableRandom(seed);
      List<Duration> delays = random.longs(4, 0, 20_000_000).mapToObj(Duration::ofNanos).toList();
      Outcome outcome =
          SimulatedWorld.of(4)
              .withSeed(seed)
              .run(
                  group -> {
                    long before = keys(group);
                    SimulatedWorld.sleep(delays.get(group.rank()));
                    if (group.rank() > 0) {
                      List<Integer> own = group.rank() == 3 ? List.of(3) : List.of(1, 2);
                      for (int i = 0; i < 2; i++) {
                        use(group.subgroup(own, LOCAL));
                      }
                      ProcessGroup tail = group.subgroup(List.of(3, 1, 2), LOCAL).orElseThrow();
                      assertThat(tail.name())
                          .as("SHA-1 of 1_2_3_1")
                          .isEqualTo("736781914428f04736f327d95027de1d85b686e6");
                      use(Optional.of(tail));
                    } else {
                      assertThat(group.subgroup(List.of(1, 2), LOCAL)).isEmpty();
                    }
                    assertThat(keys(group)).isEqualTo(before);
                  });
      assertThat(outcome.ends())
          .as("seed %d", seed)
          .hasSize(4)
          .extracting(RankEnd::failure)
          .containsOnlyNulls();
    }
  }

  @Test
  void aMemberThatDoesNotComeIsNamed() {
    Outcome outcome =
        SimulatedWorld.of(3)
            .withTimeout(Duration.ofSeconds(2))
            .run(
                group -> {
                  if (group.rank() == 1) {
                    assertThatThrownBy(() -> group.subgroup(List.of(1, 2), LOCAL))
                        .isInstanceOf(CollectiveException.class)
                        .hasMessageContaining("rank 1 did not join");
                  }
                });
    requireAllDone(outcome, 0);
  }

  /** The others have judged and left when it continues. */
  @Test
  void aRankThatStoodStillWhileItMadeAGroupNamesItself() {
    for (long seed = FIRST; seed < FIRST + SEEDS; seed++) {
      Fault pause =
          new Fault(
              Kind.PAUSE, 0, Duration.ofMillis(3010), Duration.ofMillis(8000 + 20 * (seed % 100)));
      Outcome outcome =
          SimulatedWorld.of(3)
              .withSeed(seed)
              .withTimeout(Duration.ofSeconds(2))
              .withFaults(new FaultPlan(List.of(pause)))
              .run(
                  group -> {
                    SimulatedWorld.sleep(Duration.ofMillis(group.rank() == 0 ? 2990 : 3050));
                    use(group.split(0, 0));
                  });
      assertThat(outcome.ends())
          .as("seed %d", seed)
          .extracting(end -> ((CollectiveException) end.failure()).failedRank().getAsInt())
          .containsExactly(0, 0, 0);
    }
  }
}
