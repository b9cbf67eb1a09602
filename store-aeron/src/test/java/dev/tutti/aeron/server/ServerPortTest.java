package dev.tutti.aeron.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreConnectionException;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.DatagramChannel;
import org.junit.jupiter.api.Test;

/** Tests that a server has the UDP port of the number of its TCP port. */
class ServerPortTest {
  private static InetSocketAddress loopback(int port) {
    return new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
  }

  private static void bindUdp(int port) throws IOException {
    try (DatagramChannel channel = DatagramChannel.open()) {
      channel.bind(loopback(port));
    }
  }

  @Test
  void theUdpPortIsHeldUntilItIsReleased() throws IOException {
    try (ServerPort port = ServerPort.listen(loopback(0))) {
      assertThat(port.listener().getLocalPort()).isEqualTo(port.number());
      assertThatThrownBy(() -> bindUdp(port.number())).isInstanceOf(BindException.class);
      port.releaseUdp();
      bindUdp(port.number());
    }
  }

  @Test
  void aNamedPortThatIsInUseIsRefused() throws IOException {
    try (ServerPort port = ServerPort.listen(loopback(0))) {
      assertThatThrownBy(() -> ServerPort.listen(loopback(port.number())))
          .isInstanceOf(StoreConnectionException.class)
          .hasMessageContaining("port " + port.number() + " for a store server is in use");
    }
  }

  /** Only clients that use UDP need the UDP port. */
  @Test
  void aNamedPortMayLackItsUdpPort() throws IOException {
    try (ServerPort free = ServerPort.listen(loopback(0));
        DatagramChannel other = DatagramChannel.open()) {
      free.releaseUdp();
      other.bind(loopback(free.number()));
      free.listener().close();
      try (ServerPort named = ServerPort.listen(loopback(free.number()))) {
        assertThat(named.listener().isBound()).isTrue();
      }
    }
  }
}
