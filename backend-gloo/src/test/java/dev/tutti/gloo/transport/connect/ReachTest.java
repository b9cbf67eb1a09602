package dev.tutti.gloo.transport.connect;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.spi.Time;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.SelectorProvider;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

@Timeout(300)
class ReachTest {
  private static ServerSocket listen() throws IOException {
    return new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
  }

  private static InetSocketAddress addressOf(ServerSocket server) {
    return (InetSocketAddress) server.getLocalSocketAddress();
  }

  /** A full queue of connections answers as little as a cut cable. */
  @Test
  @SuppressWarnings("try") // one of the sockets closes early
  @EnabledOnOs(value = OS.LINUX, disabledReason = "other systems refuse where the queue is full")
  void onlyPeersThatGiveNoAnswerAreUnreached() throws Exception {
    List<SocketChannel> queued = new ArrayList<>();
    try (ServerSocket listens = listen();
        ServerSocket closed = listen();
        ServerSocket full = listen()) {
      closed.close();
      for (int i = 0; i < 8; i++) {
        SocketChannel channel = SocketChannel.open();
        queued.add(channel);
        channel.configureBlocking(false);
        boolean _ = channel.connect(addressOf(full));
      }
      Map<Integer, InetSocketAddress> all =
          Map.of(
              0,
              addressOf(listens),
              1,
              new InetSocketAddress(InetAddress.getLoopbackAddress(), closed.getLocalPort()),
              3,
              addressOf(full));
      assertThat(
              Reach.unreached(
                  all, Duration.ofMillis(300), SelectorProvider.provider(), Time.SYSTEM))
          .containsExactly(3);
      assertThat(
              Reach.unreached(
                  Map.of(), Duration.ofDays(1), SelectorProvider.provider(), Time.SYSTEM))
          .isEmpty();
    } finally {
      for (SocketChannel channel : queued) {
        channel.close();
      }
    }
  }
}
