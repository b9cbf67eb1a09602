package dev.tutti.runtime.events;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.runtime.group.ScriptedProvider;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that a process without a recording creates no event, which would take over 100 ms. */
@Timeout(600)
class NoRecordingTest {
  /** Runs one collective. */
  static final class Main {
    public static void main(String[] args) throws Exception {
      try (ProcessGroup group = new ScriptedProvider().alone()) {
        group.allReduce(Tensor.of(1f));
      }
    }
  }

  @Test
  void noEventIsCreated() throws Exception {
    String metadata = "jdk.jfr.internal.MetadataRepository";
    assertThat(loadedClasses()).contains(JfrEvents.class.getName()).doesNotContain(metadata);
    assertThat(loadedClasses("-XX:StartFlightRecording")).contains(metadata);
  }

  private static List<String> loadedClasses(String... options) throws Exception {
    ProcessBuilder builder =
        new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    builder.command().addAll(List.of(options));
    builder
        .command()
        .addAll(
            List.of(
                "-Xlog:class+load",
                "-cp",
                System.getProperty("java.class.path"),
                Main.class.getName()));
    Process process = builder.redirectErrorStream(true).start();
    try {
      String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      assertThat(process.waitFor(1, TimeUnit.MINUTES)).isTrue();
      assertThat(process.exitValue()).as(output).isZero();
      return output
          .lines()
          .filter(line -> line.contains("[class,load]"))
          .map(line -> line.split(" ")[1])
          .toList();
    } finally {
      process.destroyForcibly();
    }
  }
}
