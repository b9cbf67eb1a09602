package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;

import dev.tutti.cli.process.Posix;
import java.util.List;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests which rank {@code tutti run} and the other ranks name when one fails. */
@Order(1)
@Timeout(600)
class RunFailuresTest {
  @RegisterExtension private final TestRuns runs = new TestRuns();

  /** Kills a rank that has printed its process id. */
  private static void kill(CommandProcess run, int rank) {
    String before = "[rank" + rank + "] pid ";
    String line =
        run.lines().stream().filter(each -> each.startsWith(before)).findFirst().orElseThrow();
    Posix.kill(Long.parseLong(line.substring(before.length())), Posix.SIGKILL);
  }

  @Test
  void reportsARankThatIsKilled() throws Exception {
    String script = "echo pid $$; exec sleep 600";
    try (CommandProcess run = runs.start("--nproc=4", "--linger=0", "--", "sh", "-c", script)) {
      run.await(lines -> lines.size() == 4);
      kill(run, 2);
      assertThat(run.exitCode()).isEqualTo(137);
      assertThat(run.lines())
          .anyMatch(
              line ->
                  line.startsWith(
                      "tutti run: the first to fail: rank 2 was killed by SIGKILL (exit code"
                          + " 137)"));
    }
  }

  @Test
  void ranksSayWhichOneWasKilled() throws Exception {
    try (CommandProcess run = runs.startRanks(EndlessRank.class, "--nproc=3", "--linger=4m")) {
      run.await(lines -> lines.stream().filter(line -> line.contains("] pid ")).count() == 3);
      kill(run, 1);
      assertThat(run.exitCode()).isEqualTo(137);
      for (int survivor : List.of(0, 2)) {
        String prefix = "[rank" + survivor + "] ";
        assertThat(run.lines())
            .anyMatch(
                line ->
                    line.startsWith(prefix + "Exception in thread \"main\" ")
                        && line.contains("PeerFailedException")
                        && line.contains("first failing rank 1"))
            .anyMatch(line -> line.startsWith(prefix + "\tat ") && line.contains("EndlessRank"))
            .anyMatch(
                line -> line.startsWith("  rank " + survivor + " ended with exit code 1 after "));
      }
      assertThat(run.lines())
          .anyMatch(line -> line.startsWith("tutti run: the first to fail: rank 1 was killed by"));
    }
  }

  @Test
  void namesTheRankThatTheOthersBlame() throws Exception {
    try (CommandProcess run = runs.startRanks(LeavingRank.class, "--nproc=2", "--linger=1s")) {
      assertThat(run.exitCode()).isEqualTo(1);
      List<String> report =
          run.lines().stream().dropWhile(line -> !line.startsWith("tutti run: ")).toList();
      assertThat(report.getFirst()).startsWith("tutti run: rank 1 closed its group, while ");
      assertThat(report)
          .as(() -> run.lines().toString())
          .containsSubsequence("  last lines of rank 1:", "    rank 1 stops: no more data")
          .anyMatch(
              line -> line.startsWith("  the first to end: rank 0 ended with exit code 1 after "))
          .anyMatch(line -> line.startsWith("  rank 1 was stopped by SIGTERM"));
    }
  }

  @Test
  void namesTheRankWhoseCallIsTheOddOne() throws Exception {
    assertNamesTheOddOne(0);
  }

  @Tag("full")
  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void namesTheRankWhoseCallIsTheOddOne(int odd) throws Exception {
    assertNamesTheOddOne(odd);
  }

  private void assertNamesTheOddOne(int odd) throws Exception {
    try (CommandProcess run =
        runs.startRanks(OddRank.class, List.of("" + odd), "--nproc=3", "--linger=4m")) {
      assertThat(run.exitCode()).isEqualTo(1);
      for (int rank = 0; rank < 3; rank++) {
        String prefix = "[rank" + rank + "] Exception in thread \"main\" ";
        assertThat(run.lines())
            .filteredOn(line -> line.startsWith(prefix))
            .singleElement(STRING)
            .contains("first failing rank " + odd)
            .containsOnlyOnce("ranks disagree");
      }
      List<String> report =
          run.lines().stream().dropWhile(line -> !line.startsWith("tutti run: ")).toList();
      assertThat(report.getFirst())
          .startsWith("tutti run: ranks disagree: ")
          .contains("rank " + odd + " called allReduce #2 float32[2]")
          .endsWith("; rank " + odd + " differs from the others");
      assertThat(report.get(1)).isEqualTo("  last lines of rank " + odd + ":");
      for (int rank = 0; rank < 3; rank++) {
        String end = "rank " + rank + " ended with exit code 1 after ";
        assertThat(report).filteredOn(line -> line.contains(end)).hasSize(1);
      }
    }
  }

  @Test
  void saysWhatRanksCalledOfWhichNoneIsTheOddOne() throws Exception {
    try (CommandProcess run =
        runs.startRanks(OddRank.class, List.of("1"), "--nproc=2", "--linger=4m")) {
      assertThat(run.exitCode()).isEqualTo(1);
      assertThat(run.lines())
          .noneMatch(line -> line.contains("first failing rank"))
          .anyMatch(
              line ->
                  line.startsWith("tutti run: ranks disagree: ")
                      && line.contains("rank 0 called allReduce #2 float32[3]")
                      && line.contains("rank 1 called allReduce #2 float32[2]"));
    }
  }
}
