package dev.tutti.cli.simulate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
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
  void ratesMayDifferBySize() throws IOException {
    String text = NetworkFile.text(Networks.of(8, 16));
    Network network = read(text.replaceAll("memory.gather.GBps=.*", "memory.gather.GBps=1"));
    assertThat(network.memory().gather()).isEqualTo(Curve.flat(1e-9));
    network =
        read(
            text.replaceAll(
                "memory.gather.GBps=.*", "memory.gather.GBps=1,2,4,8,4,2,1,1,1,Infinity"));
    assertThat(network.memory().gather().at(4096)).isCloseTo(0.5e-9, within(1e-20));
    assertThatThrownBy(
            () -> read(text.replaceAll("memory.gather.GBps=.*", "memory.gather.GBps=1,2")))
        .hasMessageEndingWith("memory.gather.GBps: 2 numbers instead of 10");
  }

  @Test
  void whatCostsNothingIsInfinitelyFast() throws IOException {
    LinkCost free = Networks.link(0, 0, 0, 0, 0);
    Network network =
        new Network(
            1, 1, 1, 1, free, free, 0, 0, 0, DeviceCost.H200, new StoreCost(0, 0, 0, 0, 0, 0, 0));
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
        .hasMessageEndingWith("nic.GBps must be at least 1.0E-9, not 0");
    assertThatThrownBy(() -> read(text.replaceAll("host.cores=.*", "host.cores=2.5")))
        .hasMessageEndingWith("host.cores must be a whole number from 1, not 2.5");
    assertThatThrownBy(() -> read(text.replaceAll("nic.latency.us=.*", "nic.latency.us=soon")))
        .hasMessageEndingWith("nic.latency.us must be a number, not 'soon'");
    assertThatThrownBy(() -> read(text.replaceAll("nic.latency.us=.*", "nic.latency.us=-1")))
        .hasMessageEndingWith("nic.latency.us must be from 0 to 1.0E12, not -1");
    for (String value : List.of("NaN", "Infinity", "1e13", "-Infinity")) {
      assertThatThrownBy(() -> read(text.replaceAll("(socket.each.us)=.*", "$1=" + value)))
          .hasMessageEndingWith("socket.each.us must be from 0 to 1.0E12, not " + value);
      assertThatThrownBy(() -> read(text.replaceAll("(host.ranks)=.*", "$1=" + value)))
          .hasMessageEndingWith("host.ranks must be a whole number from 1, not " + value);
    }
    for (String value : List.of("NaN", "1e-10", "-1")) {
      assertThatThrownBy(() -> read(text.replaceAll("(memory.spread.GBps)=.*", "$1=" + value)))
          .hasMessageEndingWith("memory.spread.GBps must be at least 1.0E-9, not " + value);
    }
    assertThatThrownBy(() -> read(text + "nic.GBps=7\n"))
        .hasMessageEndingWith("network: nic.GBps occurs twice");
    assertThatThrownBy(() -> read(text.replace("nic.GBps=", "nic.GBps=\\u12")))
        .hasMessageContaining("network: Malformed");
  }

  @Test
  void namesWhatIsNoNetwork() throws IOException {
    assertThatThrownBy(() -> NetworkFile.read(folder))
        .hasMessageEndingWith(" is a folder, not a network");
    Path binary = Files.write(folder.resolve("binary"), new byte[] {-1, -2});
    assertThatThrownBy(() -> NetworkFile.read(binary))
        .hasMessageEndingWith("binary is not text in UTF-8");
    assertThatThrownBy(() -> read("")).hasMessageEndingWith("network has no host.ranks");
  }
}
