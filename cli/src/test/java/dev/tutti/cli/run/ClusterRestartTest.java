package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.Main;
import dev.tutti.cli.process.OwnJava;
import dev.tutti.shared.FreePorts;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Restarts ranks that meet in a store that keeps what the first attempt wrote. */
@Timeout(600)
@Tag("full")
class ClusterRestartTest {
  @Test
  void ranksThatAreStartedAgainMeetEachOther(@TempDir Path data) throws Exception {
    String url = "aeron-cluster://127.0.0.1:" + FreePorts.consecutive(5);
    String script =
        "export TUTTI_INIT_METHOD=\"%s/job?rank=$RANK&world_size=$WORLD_SIZE\"; exec \"$@\""
            .formatted(url);
    List<String> command =
        new ArrayList<>(
            List.of("run", "--nproc=3", "--max-restarts=1", "--", "sh", "-c", script, "sh"));
    command.addAll(OwnJava.command());
    command.add(RestartedRank.class.getName());
    try (CommandProcess server =
        CommandProcess.start("store", "serve", "--at", url, "--member=0", "--data=" + data)) {
      server.await(lines -> lines.contains(url));
      try (CommandProcess run =
          CommandProcess.startProgram(
              Map.of("TUTTI_TIMEOUT", "4m"), Main.class, command.toArray(String[]::new))) {
        assertThat(run.exitCode()).as(() -> run.lines().toString()).isZero();
        assertThat(run.lines())
            .contains(
                "[rank0] attempt 1 sum 6.0",
                "[rank1] attempt 1 sum 6.0",
                "[rank2] attempt 1 sum 6.0");
      }
    }
  }
}
