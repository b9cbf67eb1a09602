package dev.tutti.contracts.fuzz;

import dev.tutti.contracts.GroupContract;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests of a backend with random programs: all operations that it declares, on several groups, from
 * several threads of each rank, synchronous and asynchronous. The results are compared with an
 * independent reference, the memory around the tensors must stay unchanged, and no program may
 * hang.
 *
 * <p>A test class implements this interface with {@link #subject()}. The test runs for {@code
 * -Dtutti.fuzzSeconds} (3) seconds, starting with the seed {@code -Dtutti.fuzzSeed} (1). When a
 * program fails, the failure names its seed and prints a smaller program that fails; {@code
 * -Dtutti.fuzzProgram=FILE} runs that program again.
 */
public interface FuzzContract extends GroupContract {
  /**
   * Returns the number of other JVMs that run some of the ranks; by default, there are none. If
   * there are any, the class needs a constructor without parameters, and it creates the subject in
   * each JVM.
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

  /** Runs mixtures of messages, collectives and groups that are rare in random programs. */
  @Test
  @Timeout(value = 1, unit = TimeUnit.DAYS)
  default void mixturesGiveTheRightResults() throws Exception {
    Fuzzer.onHost(this, fuzzer -> fuzzer.mix(getClass()));
  }
}
