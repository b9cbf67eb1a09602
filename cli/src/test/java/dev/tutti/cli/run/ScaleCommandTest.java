package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.StoreTimeoutException;
import dev.tutti.cli.Main;
import dev.tutti.cli.TestTerminal;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.shared.Until;
import dev.tutti.store.HashStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** Tests that an elastic job grows and shrinks on request. */
@Timeout(600)
class ScaleCommandTest {
  private static final Duration LONG = Duration.ofMinutes(5);
  private static final Duration SHORT = Duration.ofMillis(1);

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
      Until.holds(() -> !store.check("tutti-run/scale/wanted/1"));
      assertThat(store.listKeys()).containsExactly("tutti-run/scale/watched");
    }
  }

  @Test
  void aLateAnswerLeavesTheRequestOfAnotherAlone() throws Exception {
    Store store = new HashStore();
    BlockingQueue<CompletableFuture<String>> taken = new LinkedBlockingQueue<>();
    try (Scaling _ = Scaling.watch(store.duplicate(), (_, answer) -> taken.add(answer))) {
      Store impatient =
          PlayedStore.of(
              store,
              (method, arguments, _) -> {
                if (method.equals("get") && arguments[0].toString().contains("/done/")) {
                  Until.holds(() -> !taken.isEmpty());
                  throw new StoreTimeoutException("no answer");
                }
              });
      assertThatThrownBy(() -> Scaling.request(impatient, 5, LONG))
          .hasMessage("the launcher did not answer within 5 min; it may still do so");
      assertThatThrownBy(() -> Scaling.request(store, 7, SHORT))
          .hasMessageStartingWith("another tutti scale, to 5 ranks, is under way");
      taken.take().complete("late");
      Until.holds(() -> !store.check("tutti-run/scale/wanted/1"));
      CompletableFuture<String> next =
          CompletableFuture.supplyAsync(() -> Scaling.request(store, 7, LONG));
      taken.take().complete("done");
      assertThat(next.get()).isEqualTo("done");
    }
  }

  @Test
  void aRequestThatWasTakenBackIsNotCarriedOut() throws Exception {
    Store store = new HashStore();
    store.set("tutti-run/scale/watched", "1");
    assertThatThrownBy(() -> Scaling.request(store, 2, SHORT))
        .isInstanceOf(LaunchException.class)
        .hasMessage("the launcher did not answer within 1 ms; nothing was changed");
    List<Integer> requested = new CopyOnWriteArrayList<>();
    Scaling.Listener listener =
        (ranks, answer) -> {
          requested.add(ranks);
          answer.complete("done");
        };
    try (Scaling _ = Scaling.watch(store.duplicate(), listener)) {
      Until.holds(() -> !store.check("tutti-run/scale/wanted/1"));
      assertThat(Scaling.request(store, 7, LONG)).isEqualTo("done");
      assertThat(requested).containsExactly(7);
    }
  }

  @Test
  void aRequestThatIsServedAtOnceIsCarriedOutOnce() {
    Store store = new HashStore();
    List<Integer> requested = new CopyOnWriteArrayList<>();
    Scaling.Listener listener =
        (ranks, answer) -> {
          requested.add(ranks);
          answer.complete("done");
        };
    AtomicBoolean isWritten = new AtomicBoolean();
    Store slow =
        PlayedStore.of(
            store,
            (method, arguments, _) -> {
              if (method.equals("compareSet")) {
                isWritten.set(true);
              } else if (isWritten.get() && Arrays.toString(arguments).contains("scale/watched")) {
                Until.holds(() -> !store.check("tutti-run/scale/wanted/1"));
              }
            });
    try (Scaling _ = Scaling.watch(store.duplicate(), listener)) {
      assertThat(Scaling.request(slow, 7, LONG)).isEqualTo("done");
      assertThat(requested).containsExactly(7);
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
  void aRequestThatNobodyServesIsRefused() {
    assertThatThrownBy(() -> Scaling.request(new HashStore(), 2, LONG))
        .hasMessageStartingWith("no job that tutti run --elastic started");
  }

  @Test
  void thereIsAtLeastOneRank() {
    TestTerminal terminal = new TestTerminal();
    assertThat(terminal.tutti(Map.of(), "scale", "0")).isEqualTo(Main.USAGE);
    assertThat(terminal.err()).isEqualTo("tutti scale: RANKS must be at least 1, not 0\n");
  }
}
