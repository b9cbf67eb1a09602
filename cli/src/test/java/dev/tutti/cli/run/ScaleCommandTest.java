package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.cli.Main;
import dev.tutti.cli.TestTerminal;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.store.HashStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** Tests that an elastic job grows and shrinks on request. */
@Timeout(600)
class ScaleCommandTest {
  private static final Duration LONG = Duration.ofMinutes(5);

  @RegisterExtension private final TestRuns runs = new TestRuns();

  private static String scale(String port, String ranks) {
    TestTerminal terminal = new TestTerminal();
    String[] command = {
      "scale", ranks, "--at", "tcp://127.0.0.1:" + port, "--timeout", LONG.toSeconds() + "s"
    };
    assertThat(terminal.tutti(Map.of(), command)).as(terminal.err()).isZero();
    return terminal.out();
  }

  @Test
  void aJobGrowsAndShrinks(@TempDir Path folder) throws Exception {
    Path stop = folder.resolve("stop");
    try (CommandProcess run =
        runs.startRanks(ScaledRank.class, List.of(stop.toString()), "--nproc=2", "--elastic")) {
      String port = run.awaitLine(line -> line.startsWith("[rank0] PORT ")).substring(13);
      run.awaitLine(line -> line.equals("[rank0] RANKS 2"));
      assertThat(scale(port, "3")).isEqualTo("from 2 to 3 ranks\n");
      run.awaitLine(line -> line.equals("[rank2] RANKS 3"));
      assertThat(scale(port, "1")).isEqualTo("from 3 to 1 ranks\n");
      run.awaitLine(line -> line.equals("[rank0] RANKS 1"));
      assertThat(scale(port, "2")).isEqualTo("from 1 to 2 ranks\n");
      run.await(lines -> lines.stream().filter("[rank0] RANKS 2"::equals).count() == 2);
      Files.createFile(stop);
      assertThat(run.exitCode()).as(() -> run.lines().toString()).isZero();
      assertThat(run.lines().stream().filter(line -> line.endsWith("] END"))).hasSize(2);
    }
  }

  @Test
  void ofTwoRequestsAtOnceOneIsRefused() throws Exception {
    Store store = new HashStore();
    CompletableFuture<CompletableFuture<String>> taken = new CompletableFuture<>();
    try (Scaling _ =
        Scaling.watch(store.duplicate(), (ranks, answer) -> check(ranks, answer, taken))) {
      CompletableFuture<String> first =
          CompletableFuture.supplyAsync(() -> Scaling.request(store, 5, LONG));
      CompletableFuture<String> answer = taken.get();
      assertThatThrownBy(() -> Scaling.request(store, 7, LONG))
          .isInstanceOf(LaunchException.class)
          .hasMessage(
              "another tutti scale, to 5 ranks, is under way; nothing was changed for this one");
      answer.complete("done");
      assertThat(first.get()).isEqualTo("done");
      while (store.check("tutti-run/scale/wanted")) {
        Thread.onSpinWait();
      }
      assertThat(store.listKeys()).containsExactly("tutti-run/scale/watched");
    }
  }

  private static void check(
      int ranks,
      CompletableFuture<String> answer,
      CompletableFuture<CompletableFuture<String>> taken) {
    assertThat(ranks).isEqualTo(5);
    taken.complete(answer);
  }

  @Test
  void aRequestThatNobodyServesIsRefusedOrTakenBack() {
    Store store = new HashStore();
    assertThatThrownBy(() -> Scaling.request(store, 2, LONG))
        .hasMessageStartingWith("no job of a single node that tutti run --elastic started");
    store.set("tutti-run/scale/watched", "1");
    assertThatThrownBy(() -> Scaling.request(store, 2, Duration.ofMillis(1)))
        .hasMessage("the launcher did not answer within 1 ms");
    assertThat(store.listKeys()).containsExactly("tutti-run/scale/watched");
  }

  @Test
  void thereIsAtLeastOneRank() {
    TestTerminal terminal = new TestTerminal();
    assertThat(terminal.tutti(Map.of(), "scale", "0")).isEqualTo(Main.USAGE);
    assertThat(terminal.err()).isEqualTo("tutti scale: RANKS must be at least 1, not 0\n");
  }
}
