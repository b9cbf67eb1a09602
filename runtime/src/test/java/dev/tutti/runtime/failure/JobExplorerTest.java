package dev.tutti.runtime.failure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.runtime.failure.JobModel.Wait;
import dev.tutti.runtime.model.Explorer;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goes through all histories of a few ranks, and through random ones of more, and checks what must
 * hold in each. {@code -Dtutti.seeds=1000000} sets how many random ones, {@code
 * -Dtutti.firstSeed=…} with which seed they begin.
 */
@Execution(ExecutionMode.CONCURRENT)
@Order(1)
class JobExplorerTest {
  private static final int SEEDS = Integer.getInteger("tutti.seeds", 300);
  private static final int FIRST = Integer.getInteger("tutti.firstSeed", 0);

  @ParameterizedTest
  @CsvSource({
    "COLLECTIVE, 2, -1, 2",
    "COLLECTIVE, 2, 0, 2",
    "COLLECTIVE, 3, -1, 1",
    "COLLECTIVE, 3, 0, 1",
    "COLLECTIVE, 3, -1, 2",
    "COLLECTIVE, 3, 0, 2",
    "MISMATCH, 2, -1, 2",
    "MISMATCH, 3, -1, 1",
    "MISMATCH, 3, 0, 1",
    "MISMATCH, 3, -1, 2",
    "SLOW, 2, -1, 1",
    "SLOW, 2, 0, 1",
    "MESSAGES, 2, -1, 2",
    "MESSAGES, 3, -1, 1",
    "MESSAGES, 3, 0, 1",
    "MESSAGES, 3, -1, 2",
    "SET_UP, 2, -1, 2",
    "SET_UP, 2, 0, 2",
    "SET_UP, 3, -1, 1",
    "SET_UP, 3, 0, 1",
    "SET_UP, 3, -1, 2"
  })
  void ranksAgreeInEachHistory(Wait wait, int size, int server, int faults) {
    explore(new JobModel(wait, size, server, faults));
  }

  /** Seven and eleven million states. */
  @ParameterizedTest
  @EnumSource(names = {"MESSAGES", "MISMATCH"})
  @Tag("full")
  void threeRanksAgreeInEachHistoryOfTwoFaults(Wait wait) {
    explore(new JobModel(wait, 3, 0, 2));
  }

  @Test
  void ranksAgreeInRandomHistories() {
    for (long seed = FIRST; seed < FIRST + SEEDS; seed++) {
      check(seed);
    }
  }

  /** Seeds with which ranks once disagreed, because one joined late. */
  @ParameterizedTest
  @ValueSource(longs = {148239, 3107617})
  void whatFailedOnceHolds(long seed) {
    check(seed);
  }

  private static void check(long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    int size = 3 + random.nextInt(4);
    int server = random.nextInt(size + 1) - 1;
    int faults = 1 + random.nextInt(4);
    List<Wait> waits = List.of(Wait.values());
    Wait wait = waits.get(random.nextInt(waits.size()));
    Explorer.walk("seed " + seed, new JobModel(wait, size, server, faults), random);
  }

  /** Explores what is needed to find a fault, the smallest first; throws if there is one. */
  static void exploreSome() {
    exploreFew();
    explore(new JobModel(Wait.SLOW, 2, -1, 1));
    explore(new JobModel(Wait.COLLECTIVE, 3, -1, 1));
    explore(new JobModel(Wait.COLLECTIVE, 2, -1, 2));
    explore(new JobModel(Wait.COLLECTIVE, 2, 0, 2));
    explore(new JobModel(Wait.COLLECTIVE, 3, 0, 1));
    explore(new JobModel(Wait.MISMATCH, 3, 0, 1));
    explore(new JobModel(Wait.MESSAGES, 3, 0, 1));
    explore(new JobModel(Wait.SET_UP, 3, -1, 1));
    explore(new JobModel(Wait.SET_UP, 3, 0, 1));
    explore(new JobModel(Wait.SLOW, 2, 0, 1));
  }

  /** Explores two ranks with one fault; throws if there is one in what decides. */
  static void exploreFew() {
    explore(new JobModel(Wait.COLLECTIVE, 2, -1, 1));
    explore(new JobModel(Wait.COLLECTIVE, 2, 0, 1));
    explore(new JobModel(Wait.SET_UP, 2, -1, 1));
    explore(new JobModel(Wait.SET_UP, 2, 0, 1));
  }

  private static void explore(JobModel start) {
    assertThat(Explorer.explore("a history", start)).isGreaterThan(20);
  }
}
