package dev.tutti.aeron.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreConnectionException;
import dev.tutti.shared.FreePorts;
import io.aeron.exceptions.AeronException;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.DatagramChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
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
   * Returns whether this process has a UDP socket at a port; one that another test is starting may
   * have a copy for a moment.
   */
  private static boolean holdsUdp(int port) throws IOException {
    String local = ":%04X ".formatted(port);
    List<String> sockets = new ArrayList<>();
    for (String table : List.of("udp", "udp6")) {
      Path file = Path.of("/proc/self/net", table);
      sockets.addAll(Files.exists(file) ? Files.readAllLines(file) : List.of());
    }
    Set<String> bound =
        sockets.stream()
            .filter(line -> line.contains(local))
            .map(line -> "socket:[" + line.strip().split(" +")[9] + "]")
            .collect(Collectors.toSet());
    try (Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"))) {
      return descriptors.map(ServerPortTest::target).anyMatch(bound::contains);
    }
  }

  private static String target(Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).toString();
    } catch (IOException e) {
      return ""; // closed meanwhile
    }
  }

  @Test
  void theUdpPortIsHeldUntilItIsHandedOver() throws IOException {
    try (ServerPort port = ServerPort.listen(loopback(0))) {
      assertThat(port.listener().getLocalPort()).isEqualTo(port.number());
      assertThatThrownBy(() -> bindUdp(port.number())).isInstanceOf(BindException.class);
      assertThat(holdsUdp(port.number())).isTrue();
      assertThat(port.<String>handOverUdp(() -> "bound")).isEqualTo("bound");
      assertThat(holdsUdp(port.number())).isFalse();
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
    int number = FreePorts.one();
    try (DatagramChannel other = DatagramChannel.open()) {
      other.bind(loopback(number));
      try (ServerPort named = ServerPort.listen(loopback(number))) {
        assertThat(named.listener().isBound()).isTrue();
      }
    }
  }
}
