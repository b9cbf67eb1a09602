package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests that ranks start from the classes that an earlier run loaded. */
@Order(1)
class AotCacheTest {
  private final TestLaunches launches = new TestLaunches();

  @Test
  void keepsWhatTheFirstRankLoadedAndStartsLaterRanksFromIt(@TempDir Path folder) throws Exception {
    AotCache cache = new AotCache(folder.resolve("app.aot"));
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    assertThat(launches.run(withCache(cache, java, "-XX:+UseSerialGC", "-version"))).isZero();
    assertThat(cache.file()).isNotEmptyFile();
    assertThat(folder.toFile().list()).containsExactly("app.aot");
    // In this mode Java does not start if the file does not match.
    assertThat(
            launches.run(withCache(cache, java, "-XX:AOTMode=on", "-XX:+UseSerialGC", "-version")))
        .isZero();
    assertThat(launches.messages).isEmpty();
  }

  @Test
  void keepsNothingOfRanksThatFail(@TempDir Path folder) throws Exception {
    AotCache cache = new AotCache(folder.resolve("app.aot"));
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    assertThat(launches.run(withCache(cache, java, "NoSuchClass"))).isEqualTo(1);
    assertThat(folder).isEmptyDirectory();
  }

  private static LaunchPlan withCache(AotCache cache, String... command) {
    LaunchPlan plan = TestPlans.of(2, 0, Optional.empty(), command);
    return TestPlans.with(plan, plan.logDirectory(), plan.grace(), Optional.of(cache));
  }
}
