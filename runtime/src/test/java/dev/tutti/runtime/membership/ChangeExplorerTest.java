package dev.tutti.runtime.membership;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import dev.tutti.runtime.membership.ChangeModel.Setting;
import dev.tutti.runtime.model.Explorer;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Goes through all histories of a change of a few members, and through random ones of more, and
 * checks what must hold in each. {@code -Dtutti.seeds=1000000} sets how many random ones, {@code
 * -Dtutti.firstSeed=…} with which seed they begin. {@code -Dtutti.exploreAll=true} adds settings
 * that take a machine with many gigabytes.
 */
class ChangeExplorerTest {
  private static final int SEEDS = Integer.getInteger("tutti.seeds", 2000);
  private static final int FIRST = Integer.getInteger("tutti.firstSeed", 0);

  static Stream<Arguments> settings() {
    List<Arguments> all =
        List.of(
            arguments(2, 0, 2, 1, 1, 9, 0, false),
            arguments(2, 0, 2, 1, 1, 9, 0, true),
            arguments(2, 1, 1, 1, 1, 9, 0, true),
            arguments(2, 1, 1, 1, 3, 3, 1, false),
            arguments(2, 0, 1, 2, 1, 9, 0, true),
            arguments(3, 0, 1, 1, 1, 9, 0, true),
            arguments(3, 0, 1, 1, 3, 9, 0, false),
            arguments(3, 1, 0, 1, 1, 9, 0, false),
            arguments(3, 1, 1, 1, 1, 9, 0, true),
            arguments(3, 1, 2, 1, 1, 9, 0, false));
    return all.stream().limit(Boolean.getBoolean("tutti.exploreAll") ? all.size() : 8);
  }

  @ParameterizedTest
  @MethodSource("settings")
  void processesAgreeInEachHistory(
      int members,
      int joiners,
      int faults,
      int rounds,
      int fewest,
      int most,
      int joins,
      boolean wills) {
    Rules rules = new Rules(fewest, most, joins, 9, ChangeModel.WITHIN);
    explore(new Setting(members, joiners, faults, rounds, rules, wills, false));
  }

  @Test
  void processesAgreeThoughEntriesComeLate() {
    exploreBlind();
  }

  private static void exploreBlind() {
    Rules any = new Rules(1, 9, 0, 9, ChangeModel.WITHIN);
    explore(new Setting(2, 0, 1, 1, any, false, true));
    explore(new Setting(2, 1, 0, 1, any, false, true));
    explore(new Setting(2, 0, 0, 2, any, false, true));
    explore(new Setting(2, 1, 0, 1, new Rules(3, 3, 1, 1, ChangeModel.WITHIN), false, true));
  }

  @Test
  void processesAgreeInRandomHistories() {
    for (long seed = FIRST; seed < FIRST + SEEDS; seed++) {
      check(seed);
    }
  }

  private static void check(long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    int members = 1 + random.nextInt(6);
    int joiners = random.nextInt(4);
    int fewest = 1 + random.nextInt(members + 1);
    int most = fewest + random.nextInt(4) * random.nextInt(4);
    int joins = random.nextInt(4) / 3;
    Rules rules = new Rules(fewest, most, joins, joins + random.nextInt(3), ChangeModel.WITHIN);
    Setting setting =
        new Setting(
            members,
            joiners,
            random.nextInt(5),
            1 + random.nextInt(3),
            rules,
            random.nextBoolean(),
            random.nextInt(4) == 0);
    Explorer.walk("seed " + seed + ", " + setting, new ChangeModel(setting), random);
  }

  /** Explores what is needed to find a fault, the smallest first; throws if there is one. */
  static void exploreSome() {
    MembershipTest.readLogs();
    exploreBlind();
    Rules any = new Rules(1, 9, 0, 9, ChangeModel.WITHIN);
    explore(new Setting(2, 0, 1, 1, any, true, false));
    explore(new Setting(2, 0, 2, 1, any, false, false));
    explore(new Setting(2, 1, 1, 1, any, true, false));
    explore(new Setting(2, 0, 1, 2, any, true, false));
    explore(new Setting(2, 1, 1, 1, new Rules(3, 3, 1, 1, ChangeModel.WITHIN), false, false));
    explore(new Setting(3, 0, 1, 1, new Rules(3, 9, 0, 9, ChangeModel.WITHIN), false, false));
    explore(new Setting(3, 0, 1, 1, any, true, false));
    for (long seed = 0; seed < 3000; seed++) {
      check(seed);
    }
  }

  /** Explores two members with one fault; throws if there is one in what decides. */
  static void exploreFew() {
    explore(new Setting(2, 0, 1, 1, new Rules(1, 9, 0, 9, ChangeModel.WITHIN), true, false));
  }

  private static void explore(Setting setting) {
    assertThat(Explorer.explore(setting.toString(), new ChangeModel(setting))).isGreaterThan(0);
  }
}
