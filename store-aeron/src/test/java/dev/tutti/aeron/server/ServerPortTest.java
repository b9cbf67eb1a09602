package dev.tutti.aeron.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreConnectionException;
import io.aeron.exceptions.AeronException;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.DatagramChannel;
import java.util.concurrent.atomic.AtomicInteger;
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
  void theUdpPortIsHeldUntilItIsHandedOver() throws IOException {
    try (ServerPort port = ServerPort.listen(loopback(0))) {
      assertThat(port.listener().getLocalPort()).isEqualTo(port.number());
      assertThatThrownBy(() -> bindUdp(port.number())).isInstanceOf(BindException.class);
      assertThat(port.<String>handOverUdp(() -> "bound")).isEqualTo("bound");
      bindUdp(port.number());
    }
  }

  @Test
  void aPortThatIsStillInUseIsTriedAgain() throws IOException {
    try (ServerPort port = ServerPort.listen(loopback(0))) {
      AtomicInteger tries = new AtomicInteger();
      int last =
          port.handOverUdp(
              () -> {
                if (tries.incrementAndGet() < 3) {
                  throw new AeronException("channel error - Address already in use (at bind0)");
                }
                return tries.get();
              });
      assertThat(last).isEqualTo(3);
    }
  }

  @Test
  void otherErrorsAreNotTriedAgain() throws IOException {
    try (ServerPort port = ServerPort.listen(loopback(0))) {
      AtomicInteger tries = new AtomicInteger();
      assertThatThrownBy(
              () ->
                  port.handOverUdp(
                      () -> {
                        throw new AeronException("try " + tries.incrementAndGet());
                      }))
          .isInstanceOf(AeronException.class)
          .hasMessageContaining("try 1");
      assertThat(tries).hasValue(1);
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
      free.<Boolean>handOverUdp(() -> true);
      other.bind(loopback(free.number()));
      free.listener().close();
      try (ServerPort named = ServerPort.listen(loopback(free.number()))) {
        assertThat(named.listener().isBound()).isTrue();
      }
    }
  }
}
