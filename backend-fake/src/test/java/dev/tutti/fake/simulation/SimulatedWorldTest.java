package dev.tutti.fake.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CollectiveException;
import dev.tutti.ProcessGroup;
import dev.tutti.RendezvousException;
import dev.tutti.Tensor;
import dev.tutti.fake.RankBody;
import dev.tutti.fake.simulation.FaultPlan.Fault;
import dev.tutti.fake.simulation.FaultPlan.Kind;
import dev.tutti.fake.simulation.SimulatedWorld.Outcome;
import dev.tutti.fake.simulation.SimulatedWorld.RankEnd;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

@Isolated("threads of other tests in shared locks would bring in real time")
class SimulatedWorldTest {
  private static final RankBody SUMS =
      group -> {
        for (int i = 1; i <= 20; i++) {
          Tensor tensor = Tensor.of(i * (group.rank() + 1f));
          group.allReduce(tensor);
          assertThat(tensor.toFloatArray()).containsExactly(6f * i);
        }
        group.barrier();
      };

  /** Loads what the first world of a JVM loads, which later ones find there. */
  @BeforeAll
  static void warmUp() {
    Outcome _ = SimulatedWorld.of(3).run(SUMS);
  }

  @Test
  void aSeedDecidesARun() {
    Set<Long> hashes = new HashSet<>();
    for (int seed = 0; seed < 100; seed++) {
      SimulatedWorld world = SimulatedWorld.of(3).withSeed(seed);
      Outcome first = world.run(SUMS);
      assertThat(first.ends()).allSatisfy(end -> assertThat(end.failure()).isNull()).hasSize(3);
      assertThat(world.run(SUMS)).as("seed %d", seed).isEqualTo(first);
      hashes.add(first.hash());
    }
    assertThat(hashes).hasSize(100);
  }

  /** Sums until a fault ends it. */
  private static void sumForEver(ProcessGroup group) {
    while (true) {
      group.allReduce(Tensor.of(1f));
      SimulatedWorld.sleep(Duration.ofMillis(100));
    }
  }

  private static SimulatedWorld withCrash(long seed, int victim) {
    Fault crash = new Fault(Kind.CRASH, victim, Duration.ofSeconds(10), Duration.ZERO);
    return SimulatedWorld.of(3).withSeed(seed).withFaults(new FaultPlan(List.of(crash)));
  }

  /** The JVM keeps what a thread refers to that has not ended. */
  @Test
  void threadsOfACrashedRankEndWithItsWorld() {
    List<Thread> threads = new ArrayList<>();
    Outcome _ =
        withCrash(0, 1)
            .run(
                group -> {
                  threads.add(Thread.currentThread());
                  sumForEver(group);
                });
    assertThat(threads).hasSize(3).noneMatch(Thread::isAlive);
  }

  @Test
  void whoJoinsAfterAllOthersHaveEndedHasAnEnd() {
    Outcome outcome = SimulatedWorld.of(3).withJoiners(List.of(Duration.ofMinutes(1))).run(SUMS);
    RankEnd late = outcome.ends().getLast();
    assertThat(late.failure()).isInstanceOf(RendezvousException.class);
    assertThat(late.after()).isGreaterThan(Duration.ofMinutes(1));
  }

  @Test
  void aCrashedRankIsNamedByAllOthers() {
    for (int seed = 0; seed < 100; seed++) {
      int victim = seed % 3;
      Outcome outcome = withCrash(seed, victim).run(SimulatedWorldTest::sumForEver);
      for (RankEnd end : outcome.ends()) {
        assertThat(end.crashed()).isEqualTo(end.rank() == victim);
        if (!end.crashed()) {
          assertThat(end.failure())
              .as("seed %d, rank %d", seed, end.rank())
              .isInstanceOfSatisfying(
                  CollectiveException.class, e -> assertThat(e.failedRank()).hasValue(victim));
        }
      }
    }
  }
}
