package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.process.OwnJava;
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
 * Disconnects one of three hosts of an elastic job whose nodes come and go. Nobody notices by a
 * closed connection, and no operation has a deadline before the test ends.
 */
@Tag("full")
@Timeout(900)
class DisconnectedNodeTest {
  @TempDir private Path folder;

  @Test
  void theOthersGoOnAndTheNodeJoinsAgainOnceItIsConnected() throws Exception {
    List<CommandProcess> started = new ArrayList<>();
    Path stop = folder.resolve("stop");
    try (NamespaceHosts hosts = NamespaceHosts.create(3, folder)) {
      try {
        for (int host = 0; host < hosts.count(); host++) {
          started.add(start(hosts, host, stop));
        }
        CommandProcess zero = started.get(0);
        CommandProcess one = started.get(1);
        CommandProcess two = started.get(2);
        for (CommandProcess node : started) {
          ScaledRank.awaitSize(node, 3);
        }
        hosts.setLink(2, false);
        ScaledRank.awaitSize(zero, 2);
        ScaledRank.awaitSize(one, 2);
        String said =
            "tutti run: node 2 is gone: its launcher has sent no heartbeat for 1 min; the job"
                + " continues with 2 nodes";
        zero.awaitLine(said::equals);
        one.awaitLine(said::equals);
        assertThat(two.exitCode()).as(() -> two.lines().toString()).isEqualTo(1);
        assertThat(two.lines()).anyMatch(line -> line.contains("lost the store of the job"));
        hosts.setLink(2, true);
        CommandProcess again = start(hosts, 2, stop);
        started.add(again);
        ScaledRank.awaitSize(again, 3);
        Files.createFile(stop);
        for (CommandProcess node : List.of(zero, one, again)) {
          assertThat(node.exitCode()).as(() -> node.lines().toString()).isZero();
          assertThat(node.lines()).anyMatch(line -> line.matches("\\[rank\\d+] END"));
        }
      } finally {
        started.forEach(CommandProcess::close);
        for (CommandProcess node : started) {
          int _ = node.exitCode();
        }
      }
    }
  }

  private static CommandProcess start(NamespaceHosts hosts, int host, Path stop) throws Exception {
    List<String> arguments = new ArrayList<>(List.of("run", "--jvm-flags=none", "--nnodes=2:3"));
    arguments.addAll(List.of("--elastic", "--node-rank=" + host));
    arguments.addAll(List.of("--master-addr", hosts.name(0), "--master-port=29500", "--"));
    arguments.addAll(OwnJava.command());
    arguments.addAll(List.of(ScaledRank.class.getName(), stop.toString()));
    return CommandProcess.startInside(hosts.inside(host), Map.of(), arguments);
  }
}
