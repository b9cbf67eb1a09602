package dev.tutti.cli.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.tutti.cli.run.CommandProcess;
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

/**
 * Tests that JDK recordings name the rank that is late, and show pauses beside what they held up.
 */
@Timeout(180)
@Tag("full")
class PauseTest {
  private static final int SIZE = 3;

  @TempDir Path folder;

  @Test
  void aPauseIsNamedAsTheCauseOfOneLateStepAndTheLateRankOfTheOthers() throws Exception {
    List<CommandProcess> ranks = new ArrayList<>();
    try (TcpStoreServer server = new TcpStoreServer(InetAddress.getLoopbackAddress(), 0)) {
      for (int rank = 0; rank < SIZE; rank++) {
        String recording = folder.resolve(rank + ".jfr").toString();
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
    RankTrace trace = TraceFiles.read(List.of(folder));
    TraceAnalysis analysis = TraceAnalysis.of(trace);
    assertThat(analysis.problems).isEmpty();
    TraceAnalysis.Straggling late = analysis.stragglers.get(SIZE - 1);
    assertThat(late.times).isGreaterThan(50);
    double slept =
        Double.parseDouble(
            ranks.get(SIZE - 1).awaitLine(line -> line.startsWith("SLEPT ")).substring(6));
    assertThat((double) late.medianLag()).isCloseTo(slept, within(slept / 10));
    assertThat(analysis.heldUp)
        .anySatisfy(
            held -> {
              assertThat(held.entry().rank()).isZero();
              // The barrier is the first collective.
              assertThat(held.entry().sequence()).isEqualTo(32);
              assertThat(held.what()).startsWith("GC Pause").contains("System.gc()");
              assertThat(held.pausedNanos()).isBetween(held.lagNanos() / 2, held.lagNanos());
              assertThat(held.describe())
                  .startsWith("group 0: rank 0 was ")
                  .contains(
                      " ms late for allReduce #32 float32 of 4 bytes; its JVM was paused for ");
            });
    assertThat(new TimeLine(trace, analysis).toPerfetto()).contains("System.gc()");
    assertThat(new TimeLine(trace, analysis).toHtml("")).contains("System.gc()");
  }
}
