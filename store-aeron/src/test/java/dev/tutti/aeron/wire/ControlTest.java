package dev.tutti.aeron.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Tests how a client connects where no server has the port yet. */
class ControlTest {
  @Test
  void aClientThatReachesItselfSaysSoAndLeavesThePortToTheServer() throws Exception {
    Socket socket = new Socket();
    socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    InetSocketAddress own = (InetSocketAddress) socket.getLocalSocketAddress();
    Timing timing = Timing.of(Timing.DEFAULT_LEASE);
    long deadline = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
    assertThatThrownBy(() -> Control.connect(socket, own, timing, deadline))
        .isInstanceOf(ConnectException.class)
        .hasMessage(
            "this process reached itself at 127.0.0.1:%d, since no server has the port yet and it"
                + " is among those that the host gives to clients",
            own.getPort());
    assertThat(socket.isClosed()).isTrue();
    try (ServerSocket server = new ServerSocket()) {
      server.setReuseAddress(false);
      server.bind(own);
      assertThat(server.getLocalPort()).isEqualTo(own.getPort());
    }
  }
}
