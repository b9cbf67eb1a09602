package dev.tutti.gloo.simulation;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.Settings;
import dev.tutti.contracts.ContractSubject;
import dev.tutti.contracts.TestTier;
import dev.tutti.contracts.fuzz.SimulatedPrograms;
import dev.tutti.contracts.fuzz.SimulatedPrograms.Trouble;
import dev.tutti.fake.simulation.SimulatedHost;
import dev.tutti.gloo.GlooProvider;
import dev.tutti.spi.BackendProvider;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Runs random programs over simulated sockets, with a TCP store. {@code -Dtutti.seeds=…} sets how
 * many, {@code -Dtutti.firstSeed=…} with which seed to begin.
 */
@Isolated("threads of other tests in shared locks would bring in real time")
class SimulatedProgramsTest {
  private static final int SEEDS = Integer.getInteger("tutti.seeds", TestTier.isFast() ? 6 : 50);
  private static final int FIRST = Integer.getInteger("tutti.firstSeed", 0);

  /** Ranks of Gloo, each on the host of its thread. */
  private static final class Subject implements ContractSubject {
    @Override
    public BackendProvider provider() {
      SimulatedHost host = SimulatedHost.current();
      return new GlooProvider(host.channels(), host.address());
    }

    @Override
    public Capabilities capabilities() {
      return new GlooProvider().capabilities("cpu").without(Set.of(Feature.SYMMETRIC_MEMORY));
    }

    @Override
    public Settings settings() {
      return Settings.ofEnvironment(
          Map.of(GlooProvider.SHARED_BYTES.name(), "0", GlooProvider.SPIN.name(), "0"));
    }

    @Override
    public int[] worldSizes() {
      return new int[] {2, 3, 4};
    }
  }

  /**
   * Seeds that found faults: a farewell that was cut, and a hang of collectives beside messages.
   */
  @ParameterizedTest
  @CsvSource({"NONE, 5", "DELAYS, 5", "NONE, 18", "NONE, 19", "NONE, 36"})
  void whatFailedOnceHolds(Trouble trouble, long seed) {
    new SimulatedPrograms(new Subject(), trouble).run(seed);
  }

  @ParameterizedTest
  @EnumSource
  void randomProgramsGiveTheRightResults(Trouble trouble) {
    SimulatedPrograms programs = new SimulatedPrograms(new Subject(), trouble);
    for (long seed = FIRST; seed < FIRST + SEEDS; seed++) {
      programs.run(seed);
    }
  }
}
