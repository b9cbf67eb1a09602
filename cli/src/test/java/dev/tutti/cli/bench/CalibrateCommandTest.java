package dev.tutti.cli.bench;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.TestTerminal;
import dev.tutti.cli.simulate.LinkCost;
import dev.tutti.cli.simulate.Network;
import dev.tutti.cli.simulate.NetworkFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(600)
class CalibrateCommandTest {
  @TempDir private Path folder;

  private final TestTerminal terminal = new TestTerminal();

  @Test
  void writesANetworkForSimulations() throws Exception {
    Path file = folder.resolve("network");
    int code =
        terminal.tutti(
            System.getenv(),
            "calibrate",
            "--ranks=2",
            "--max-bytes=16K",
            "--time=20ms",
            "--output=" + file);
    assertThat(code).as(terminal.err()).isZero();
    Network network = NetworkFile.read(file);
    assertThat(network.hostCores()).isEqualTo(Runtime.getRuntime().availableProcessors());
    for (LinkCost link : List.of(network.memory(), network.socket())) {
      assertThat(link.round() + link.each() + link.rank() + link.host()).isPositive();
    }
    assertThat(Files.readString(file)).contains("NIC, rack and spine: not measured, to be set.");
    assertThat(terminal.err())
        .contains("measuring 2 ranks, memory", "measuring 2 ranks, socket")
        .containsPattern("memory, 2 ranks: \\d of 9 within 20 %")
        .containsPattern("socket, 2 ranks: \\d of 9 within 20 %");
  }
}
