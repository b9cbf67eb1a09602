package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.contracts.TestTier;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Runs groups that fail in a separate process, in which nothing may be left. One of each kind by
 * default, and four kinds in the fast tier; {@code -Dtutti.faultRuns=200} makes them 200.
 */
class FaultRunsTest {
  private static final int RUNS = Integer.getInteger("tutti.faultRuns", TestTier.isFast() ? 4 : 12);

  @TempDir Path directory;

  @Test
  @Timeout(900)
  void nothingIsLeftByGroupsThatFail() throws Exception {
    Path output = directory.resolve("output.txt");
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElseThrow());
    command.addAll(
        List.of("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:+UseSerialGC"));
    command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "-cp"));
    command.add(ManagementFactory.getRuntimeMXBean().getClassPath());
    command.addAll(List.of(FaultRunsMain.class.getName(), Integer.toString(RUNS)));
    command.add(Files.createDirectory(directory.resolve("shared")).toString());
    Process process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    try {
      assertThat(process.waitFor(Math.max(840, 60 + 4L * RUNS), TimeUnit.SECONDS)).isTrue();
    } finally {
      process.destroyForcibly();
    }
    List<String> lines = Files.readAllLines(output);
    assertThat(lines).endsWith("OK");
    assertThat(lines.stream().filter(line -> line.startsWith("RUN ")).count()).isEqualTo(RUNS);
  }
}
