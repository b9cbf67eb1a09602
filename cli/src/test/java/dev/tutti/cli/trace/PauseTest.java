package dev.tutti.cli.trace;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.run.CommandProcess;
import dev.tutti.runtime.view.JobPage;
import dev.tutti.runtime.view.JobView;
import dev.tutti.store.tcp.TcpStoreServer;
import java.net.InetAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests that JDK recordings show pauses beside what they held up. */
@Timeout(600)
@Tag("full")
class PauseTest {
  private static final int SIZE = 3;

  @TempDir Path folder;

  /** Runs the ranks. */
  private static void run(Path records) throws Exception {
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
                PausedRank.class));
      }
      for (CommandProcess rank : ranks) {
        assertThat(rank.exitCode()).as(rank.lines().toString()).isZero();
      }
    } finally {
      ranks.forEach(CommandProcess::close);
    }
  }

  @Test
  void aPauseIsNamedAsTheCauseOfALateStep() throws Exception {
    run(folder);
    JobView job = JobView.of(TraceFiles.read(List.of(folder)));
    assertThat(job.problems()).isEmpty();
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
