package dev.tutti.cli.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.tutti.cli.run.CommandProcess;
import dev.tutti.runtime.view.HeldUp;
import dev.tutti.runtime.view.JobPage;
import dev.tutti.runtime.view.JobView;
import dev.tutti.runtime.view.Lags;
import dev.tutti.store.tcp.TcpStoreServer;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests that JDK recordings name the rank that is late, and show pauses beside what they held up.
 */
@Timeout(600)
@Tag("full")
class PauseTest {
  private static final int SIZE = 3;
  private static final int LONGEST_MILLIS = 640;

  @TempDir Path folder;

  /** Runs the ranks, and returns how long the last one slept in at least half of the steps. */
  private static double run(int millis, Path records) throws Exception {
    List<CommandProcess> ranks = new ArrayList<>();
    try (TcpStoreServer server = new TcpStoreServer(InetAddress.getLoopbackAddress(), 0)) {
      for (int rank = 0; rank < SIZE; rank++) {
        String recording = records.resolve(rank + ".jfr").toString();
        ranks.add(
            CommandProcess.startProgram(
                Map.of(
                    "RANK", "" + rank,
                    "WORLD_SIZE", "" + SIZE,
                    "MASTER_ADDR", "127.0.0.1",
                    "MASTER_PORT", "" + server.port(),
                    "TORCHELASTIC_USE_AGENT_STORE", "1",
                    "TUTTI_BACKEND", "gloo",
                    "JAVA_TOOL_OPTIONS", "-XX:StartFlightRecording=filename=" + recording),
                PausedRank.class,
                "" + millis));
      }
      for (CommandProcess rank : ranks) {
        assertThat(rank.exitCode()).as(rank.lines().toString()).isZero();
      }
    } finally {
      ranks.forEach(CommandProcess::close);
    }
    return Double.parseDouble(
        ranks.get(SIZE - 1).awaitLine(line -> line.startsWith("SLEPT ")).substring(6));
  }

  /** Returns whether ranks mostly waited for the last one, and not for a processor. */
  private static boolean isUndisturbed(Lags lags, double slept) {
    Lags.Lag late = lags.of(SIZE - 1);
    return late.times() > 50
        && Math.abs(late.medianNanos() - slept) < slept / 10
        && lags.heldUp().stream().anyMatch(PauseTest::isOfPausedRank);
  }

  /** The barrier is the first collective. */
  private static boolean isOfPausedRank(HeldUp held) {
    return held.call().rank() == 0 && held.call().call().sequence() == 32;
  }

  @Test
  void aPauseIsNamedAsTheCauseOfOneLateStepAndTheLateRankOfTheOthers() throws Exception {
    int millis = 40;
    Path records = Files.createTempDirectory(folder, "records-");
    double slept = run(millis, records);
    // On a busy machine, longer steps make up for the time in which ranks wait for a processor.
    while (millis < LONGEST_MILLIS
        && !isUndisturbed(Lags.of(TraceFiles.read(List.of(records))), slept)) {
      millis *= 4;
      records = Files.createTempDirectory(folder, "records-");
      slept = run(millis, records);
    }
    JobView job = JobView.of(TraceFiles.read(List.of(records)));
    assertThat(job.problems()).isEmpty();
    assertThat(job.verdict().text()).startsWith("rank 2 is slow: last in ");
    Lags.Lag late = job.lags().of(SIZE - 1);
    assertThat(late.times()).isGreaterThan(50);
    assertThat((double) late.medianNanos()).isCloseTo(slept, within(slept / 10));
    assertThat(job.lags().heldUp())
        .anySatisfy(
            held -> {
              assertThat(held.call().rank()).isZero();
              // The barrier is the first collective.
              assertThat(held.call().call().sequence()).isEqualTo(32);
              assertThat(held.what()).startsWith("GC Pause").contains("System.gc()");
              assertThat(held.pausedNanos()).isBetween(held.lagNanos() / 2, held.lagNanos());
            });
    assertThat(job.lines())
        .anyMatch(
            line ->
                line.matches(
                    "PAUSE group 0: rank 0 was .* ms late for allReduce #32 float32\\[1]; its JVM"
                        + " was paused for .*"));
    assertThat(PerfettoEvents.write(job)).contains("System.gc()");
    assertThat(JobPage.of(job)).contains("System.gc()");
  }
}
