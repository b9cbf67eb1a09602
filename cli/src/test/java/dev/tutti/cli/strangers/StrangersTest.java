package dev.tutti.cli.strangers;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.SourceTree;
import dev.tutti.spi.Time;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Lets {@link Strangers} reach stores and ranks for some rounds. {@code
 * -Dtutti.strangers.minutes=60} makes them an hour for each, {@code -Dtutti.strangers.seed} chooses
 * others.
 */
@EnabledOnOs(OS.LINUX)
class StrangersTest {
  private static final long MINUTES = Long.getLong("tutti.strangers.minutes", 0);
  private static final long SEED = Long.getLong("tutti.strangers.seed", 20_261_129);
  private static final int ROUNDS = "fast".equals(System.getProperty("tutti.tier")) ? 1 : 5;

  @TempDir private Path folder;

  @ParameterizedTest
  @EnumSource
  @Timeout(value = 5, unit = TimeUnit.HOURS)
  void strangersHarmNoJob(Target.Kind kind) throws Exception {
    assertThat(Files.readString(SourceTree.root().resolve("docs/security.md")))
        .contains(kind.row());
    long end = Time.SYSTEM.deadline(Duration.ofMinutes(MINUTES));
    System.out.println(
        Strangers.run(
            kind, SEED, round -> round < ROUNDS || !Time.SYSTEM.left(end).isZero(), folder));
  }
}
