package dev.tutti.fake.failure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.MissingRanks;
import dev.tutti.OpType;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.fake.simulation.Simulation;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests until when ranks may come to a monitored barrier that goes through the store. */
@Isolated("threads of other tests in shared locks would bring in real time")
class MonitoredBarrierTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(2);

  /** Runs ranks that come to a barrier at given times; returns what each throws. */
  private static List<Throwable> comeAt(int... millis) throws Exception {
    ScriptedProvider provider = new ScriptedProvider();
    provider.missing = Set.of(OpType.MONITORED_BARRIER);
    return Simulation.groups(
        millis.length,
        Simulation.store(),
        provider,
        group -> {
          SimulatedWorld.sleep(Duration.ofMillis(millis[group.rank()]));
          return catchThrowable(() -> group.monitoredBarrier(TIMEOUT, MissingRanks.ALL));
        });
  }

  /**
   * Only rank 0 decides which ranks are late; the others wait for it 2 s longer than their timeout.
   */
  @Simulated
  void itPassesWhereAllAreInTimeForRankZero() throws Exception {
    assertThat(comeAt(1900, 0, 3800)).hasSize(3).containsOnlyNulls();
  }

  @Simulated
  void aRankThatIsLateForRankZeroIsNamed() throws Exception {
    for (Throwable failure : comeAt(0, 0, 2100)) {
      assertThat(failure)
          .isInstanceOfSatisfying(
              CollectiveException.class, e -> assertThat(e.failedRank()).hasValue(2));
    }
  }

  @Simulated
  void allMissingRanksAreNamed() throws Exception {
    List<Throwable> failures = comeAt(0, 60_000, 60_000, 0);
    assertThat(failures.get(0))
        .isInstanceOf(CollectiveTimeoutException.class)
        .hasMessageContaining("ranks 1, 2 did not reach the monitored barrier in time");
    for (Throwable failure : failures) {
      assertThat(failure)
          .isInstanceOfSatisfying(
              CollectiveException.class, e -> assertThat(e.failedRank()).hasValue(1));
    }
  }
}
