package dev.tutti.cli.trace;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.run.CommandProcess;
import dev.tutti.runtime.view.JobView;
import dev.tutti.store.tcp.TcpStoreServer;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests that hanging ranks give their flight records to an outside process that requests them. */
@Timeout(600)
class RecordOnRequestTest {
  @TempDir Path folder;

  private final List<CommandProcess> ranks = new ArrayList<>();
  private TcpStoreServer server;

  @BeforeEach
  void serve() throws Exception {
    server = new TcpStoreServer(InetAddress.getLoopbackAddress(), 0);
  }

  @AfterEach
  void end() {
    ranks.forEach(CommandProcess::close);
    server.close();
  }

  private void start(Map<String, String> more) throws Exception {
    for (int rank = 0; rank < 2; rank++) {
      Map<String, String> environment = new HashMap<>(more);
      environment.putAll(
          Map.of(
              "RANK", "" + rank,
              "WORLD_SIZE", "2",
              "MASTER_ADDR", "127.0.0.1",
              "MASTER_PORT", "" + server.port(),
              "TORCHELASTIC_USE_AGENT_STORE", "1",
              "TUTTI_SLOW", "0", // rank 0 waits for as long as this test takes
              "TUTTI_BACKEND", "gloo"));
      ranks.add(CommandProcess.startProgram(environment, StalledRank.class));
    }
    for (CommandProcess rank : ranks) {
      rank.await(lines -> lines.contains("READY"));
    }
  }

  private static String run(String... command) {
    try {
      Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
      String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      assertThat(process.waitFor()).as(output).isZero();
      return output;
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  private static String jcmd(CommandProcess rank, String... command) {
    List<String> all = new ArrayList<>();
    all.add(Path.of(System.getProperty("java.home"), "bin", "jcmd").toString());
    // By default, a JVM has ten seconds to answer.
    all.add("-J-Dsun.tools.attach.attachTimeout=240000");
    all.add("" + rank.pid());
    all.addAll(List.of(command));
    return run(all.toArray(String[]::new));
  }

  private void requireThatTheWaitIsKnown() throws Exception {
    assertThat(JobView.of(TraceFiles.read(List.of(folder))).lines())
        .anyMatch(line -> line.matches("0 +0 +allReduce #3 +\\S+ m?s +rank 1 .*"))
        .anyMatch(line -> line.matches("1 +0 +none since #2 .*"));
  }

  @Test
  void bySignal() throws Exception {
    start(Map.of("TUTTI_FLIGHT_RECORD_DUMP", folder.resolve("rank_").toString()));
    for (int rank = 0; rank < 2; rank++) {
      String _ = run("kill", "-USR1", "" + ranks.get(rank).pid());
      for (String file : List.of("flight-record-" + rank + ".json", "rank_" + rank)) {
        while (!Files.exists(folder.resolve(file))) {
          LockSupport.parkNanos(1_000_000);
        }
      }
    }
    requireThatTheWaitIsKnown();
    ranks.forEach(
        rank ->
            assertThat(rank.lines())
                .noneMatch(line -> line.contains("dev.tutti"))
                .contains("READY"));
  }

  @Test
  @Tag("full")
  void byJcmd() throws Exception {
    start(Map.of());
    for (CommandProcess rank : ranks) {
      String output = jcmd(rank, "JFR.start", "name=tutti");
      assertThat(output).contains("Started recording");
    }
    for (int rank = 0; rank < 2; rank++) {
      String file = folder.resolve(rank + ".jfr").toString();
      String output = jcmd(ranks.get(rank), "JFR.dump", "name=tutti", "filename=" + file);
      assertThat(output).contains("Dumped recording");
    }
    requireThatTheWaitIsKnown();
  }
}
