package dev.tutti.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class HostPortTest {
  @ParameterizedTest
  @CsvSource({
    "node7,node7,-1,node7",
    "node7:29500,node7,29500,node7:29500",
    "trainer_rank_0:1,trainer_rank_0,1,trainer_rank_0:1",
    "_dns._tcp.example.com,_dns._tcp.example.com,-1,_dns._tcp.example.com",
    "10.0.0.1:65535,10.0.0.1,65535,10.0.0.1:65535",
    "[::1]:29500,::1,29500,[::1]:29500",
    "[::1],::1,-1,[::1]",
    "::1,::1,-1,[::1]",
    "fe80::1%eth0,fe80::1%eth0,-1,[fe80::1%eth0]",
    "::ffff:10.0.0.1,::ffff:10.0.0.1,-1,[::ffff:10.0.0.1]"
  })
  void readsAnAddress(String text, String host, int port, String shown) {
    HostPort address = HostPort.parse(text);
    assertThat(address).isEqualTo(new HostPort(host, port));
    assertThat(address).hasToString(shown);
  }

  @Test
  void writesAddressesOfSocketsWithoutASlash() throws Exception {
    byte[] bytes = {10, 0, 0, 1};
    assertThat(HostPort.text(new InetSocketAddress(InetAddress.getByAddress(bytes), 7)))
        .isEqualTo("10.0.0.1:7");
    assertThat(HostPort.text(new InetSocketAddress(InetAddress.getByAddress("node", bytes), 7)))
        .isEqualTo("10.0.0.1:7");
    assertThat(HostPort.text(new InetSocketAddress(InetAddress.ofLiteral("fe80::1"), 7)))
        .isEqualTo("[fe80:0:0:0:0:0:0:1]:7");
    assertThat(HostPort.text(InetSocketAddress.createUnresolved("node_7", 7)))
        .isEqualTo("node_7:7");
    assertThat(HostPort.text(null)).isEqualTo("null");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "''|the host is missing",
        ":29500|the host is missing",
        "a:b|the port must be a number from 1 to 65535, not 'b'",
        "a:65536|the port must be a number from 1 to 65535, not '65536'",
        "a:|the port must be a number from 1 to 65535, not ''",
        "[::1]:|the port must be a number from 1 to 65535, not ''",
        "a:-1|the port must be a number from 1 to 65535, not '-1'",
        "a:1:2:z|an IPv6 address with a port needs brackets",
        "[::1|'[::1' is not a host",
        "[::1]29500|'[::1]29500' is not a host",
        "[name]:1|'[name]:1' is not a host",
        "user@host:1|'user@host' is not a host",
        "a b|'a b' is not a host",
        "-x|'-x' is not a host"
      })
  void saysWhatIsWrong(String text, String message) {
    assertThatThrownBy(() -> HostPort.parse(text))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(message);
  }
}
