package dev.tutti.cli.bench;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.TestTerminal;
import dev.tutti.cli.simulate.LinkCost;
import dev.tutti.cli.simulate.Network;
import dev.tutti.cli.simulate.NetworkFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(600)
@Order(1)
class CalibrateCommandTest {
  @TempDir private Path folder;

  private final TestTerminal terminal = new TestTerminal();

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "--ranks=2,1 | --ranks must be at least 2, not 1",
        "--check=0 | --check must be at least 2, not 0",
        "--max-bytes=512 | --min-bytes must be from 1 to --max-bytes, not 1024",
        "--time=0 | --time must be at least 1 ms",
        "--output=/none/network | no such file or directory: /none/network",
        "--output=/ | /: Is a directory",
      })
  void refusesBeforeItMeasures(String option, String message) {
    assertThat(terminal.tutti(System.getenv(), "calibrate", "--ranks=2", option)).isNotZero();
    assertThat(terminal.err()).contains("tutti calibrate: ", message).doesNotContain("memory,");
  }

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
    assertThat(network.memory().shares().longer()).allMatch(factor -> factor >= 1);
    for (LinkCost link : List.of(network.memory(), network.socket())) {
      assertThat(link.round() + link.each() + link.spread().seconds().getFirst()).isPositive();
    }
    assertThat(Files.readString(file))
        .contains("NIC, rack, spine, devices and store: not measured, to be set.");
    assertThat(terminal.err())
        .contains("measuring 2 ranks, memory", "measuring 2 ranks, socket")
        .containsPattern("memory, 2 ranks: \\d of 9 within 20 %")
        .containsPattern("socket, 2 ranks: \\d of 9 within 20 %");
  }
}
