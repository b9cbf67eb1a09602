package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.process.OwnJava;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests that a healthy job logs what docs/watching.md describes: at most one line per rank. */
@Timeout(600)
class HealthyLogTest {
  private static final String TOKEN = "0123456789abcdef0123";

  /** What a job logs that deletes the files of another one, which was killed. */
  private static final String OTHERS = ", left behind by a process that has ended";

  private static final Pattern LOGGED =
      Pattern.compile(".*\\b(INFO|WARNING|ERROR|SEVERE)\\b.*", Pattern.DOTALL);

  @Test
  void ranksLogNothing() throws Exception {
    assertLogs("tcp", "-1", 0);
  }

  @Tag("full")
  @ParameterizedTest
  @CsvSource({"tcp, 0, 2", "aeron, -1, 0"})
  void ranksLogNothingButTheirDebugServer(String store, String debugPort, int expected)
      throws Exception {
    assertLogs(store, debugPort, expected);
  }

  private static void assertLogs(String store, String debugPort, int expected) throws Exception {
    List<String> arguments = new ArrayList<>(List.of("run", "--nproc", "2", "--"));
    arguments.addAll(OwnJava.command());
    arguments.addAll(List.of(SummingProgram.class.getName(), "env://", "-1"));
    Map<String, String> environment =
        Map.of(
            "TUTTI_TOKEN", TOKEN,
            "TUTTI_STORE", store,
            "TUTTI_BACKEND", "gloo",
            "TUTTI_SLOW", "0", // a busy machine may make ranks wait
            "TUTTI_DEBUG_PORT", debugPort);
    try (CommandProcess run = CommandProcess.startInside(List.of(), environment, arguments)) {
      assertThat(run.exitCode()).as(String.join("\n", run.lines())).isZero();
      assertThat(run.lines()).filteredOn(line -> line.contains("SUM of 2, 0 wrong")).hasSize(2);
      assertThat(run.lines())
          .filteredOn(line -> LOGGED.matcher(line).matches())
          .filteredOn(line -> !line.contains(OTHERS))
          .hasSize(expected)
          .allMatch(line -> line.matches("\\[rank[01]] INFO: rank [01]/2: debug server at .*"));
    }
  }
}
