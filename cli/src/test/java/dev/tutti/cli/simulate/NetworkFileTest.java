package dev.tutti.cli.simulate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NetworkFileTest {
  @TempDir private Path folder;

  private Network read(String text) throws IOException {
    return NetworkFile.read(Files.writeString(folder.resolve("network"), text));
  }

  @Test
  void readsWhatItWrites() throws IOException {
    Network network = Networks.of(8, 16);
    Network again = read("# a comment\n" + NetworkFile.text(network));
    assertThat(NetworkFile.text(again)).isEqualTo(NetworkFile.text(network));
    assertThat(again.nic()).isCloseTo(1e-9, within(1e-20));
    assertThat(again.socket().round()).isCloseTo(10e-6, within(1e-15));
    assertThat(again.hostCores()).isEqualTo(16);
  }

  @Test
  void whatCostsNothingIsInfinitelyFast() throws IOException {
    LinkCost free = new LinkCost(0, 0, 0, 0, 0);
    Network network = new Network(1, 1, 1, 1, free, free, 0, 0, 0);
    assertThat(NetworkFile.text(network)).contains("nic.GBps=Infinity");
    assertThat(read(NetworkFile.text(network))).isEqualTo(network);
  }

  @Test
  void namesWhatIsWrong() {
    String text = NetworkFile.text(Networks.of(8, 16));
    assertThatThrownBy(() -> read(text.replace("nic.GBps", "nic.gbps")))
        .hasMessageEndingWith("has unknown keys: nic.gbps");
    assertThatThrownBy(() -> read(text.replaceAll("nic.GBps=.*", "")))
        .hasMessageEndingWith("has no nic.GBps");
    assertThatThrownBy(() -> read(text.replaceAll("nic.GBps=.*", "nic.GBps=0")))
        .hasMessageEndingWith("nic.GBps must not be 0");
    assertThatThrownBy(() -> read(text.replaceAll("host.cores=.*", "host.cores=2.5")))
        .hasMessageEndingWith("host.cores must be a whole number from 1, not 2.5");
    assertThatThrownBy(() -> read(text.replaceAll("nic.latency.us=.*", "nic.latency.us=soon")))
        .hasMessageEndingWith("nic.latency.us must be a number, not 'soon'");
    assertThatThrownBy(() -> read(text.replaceAll("nic.latency.us=.*", "nic.latency.us=-1")))
        .hasMessageEndingWith("nic.latency.us must be at least 0, not -1");
  }
}
