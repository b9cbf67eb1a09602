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
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
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

  /**
   * Binds a UDP port that was released: a process that another test is starting may have a copy of
   * the socket for a moment.
   */
  private static void bindReleased(DatagramChannel channel, int port) throws IOException {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
    while (true) {
      try {
        channel.bind(loopback(port));
        return;
      } catch (BindException e) {
        if (System.nanoTime() - deadline > 0) {
          throw e;
        }
        LockSupport.parkNanos(1_000_000);
      }
    }
  }

  @Test
  void theUdpPortIsHeldUntilItIsHandedOver() throws IOException {
    try (ServerPort port = ServerPort.listen(loopback(0))) {
      assertThat(port.listener().getLocalPort()).isEqualTo(port.number());
      assertThatThrownBy(() -> bindUdp(port.number())).isInstanceOf(BindException.class);
      assertThat(port.<String>handOverUdp(() -> "bound")).isEqualTo("bound");
      try (DatagramChannel channel = DatagramChannel.open()) {
        bindReleased(channel, port.number());
      }
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
      bindReleased(other, free.number());
      free.listener().close();
      try (ServerPort named = ServerPort.listen(loopback(free.number()))) {
        assertThat(named.listener().isBound()).isTrue();
      }
    }
  }
}
