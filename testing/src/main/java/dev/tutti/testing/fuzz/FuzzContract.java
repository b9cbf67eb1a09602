package dev.tutti.testing.fuzz;

import dev.tutti.testing.GroupContract;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests a backend with random programs: all operations that it declares, of several groups, from
 * several threads of each rank, synchronous and not. The results are compared with a reference of
 * their own; memory around the tensors must stay as it is, and no program may hang.
 *
 * <p>A test class implements it with {@link #subject()}. It runs for {@code -Dtutti.fuzzSeconds}
 * (3), from the seed {@code -Dtutti.fuzzSeed} (1) on. The failure of a program names its seed and
 * prints a smaller program that fails, which {@code -Dtutti.fuzzProgram=FILE} runs again.
 */
public interface FuzzContract extends GroupContract {
  /**
   * Returns how many other JVMs have a share of the ranks; by default none. With some, the class
   * needs a constructor without parameters, and makes the subject in each JVM.
   */
  default int processes() {
    return 0;
  }

  /** Runs random programs and compares all results. */
  @Test
  @Timeout(value = 1, unit = TimeUnit.DAYS)
  default void randomProgramsGiveTheRightResults() throws Exception {
    Fuzzer.onHost(this, Fuzzer::run);
  }

  /** Runs mixtures of messages, collectives and groups that random programs rarely have. */
  @Test
  @Timeout(value = 1, unit = TimeUnit.DAYS)
  default void mixturesGiveTheRightResults() throws Exception {
    Fuzzer.onHost(this, Fuzzer::mix);
  }
}
