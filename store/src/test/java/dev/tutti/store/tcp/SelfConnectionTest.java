package dev.tutti.store.tcp;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Gives a client the port of a server that does not run yet, as the system does by chance. */
class SelfConnectionTest {
  @Test
  void aClientThatReachesItselfLeavesThePortToTheServer() throws Exception {
    SocketChannel channel =
        SocketChannel.open().bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    InetSocketAddress server = (InetSocketAddress) channel.getLocalAddress();
    long deadline = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
    assertThatThrownBy(
            () -> TcpConnection.open(channel, server, null, deadline, deadline, Time.SYSTEM))
        .isInstanceOf(ConnectException.class)
        .hasMessage("no process listens on 127.0.0.1:" + server.getPort());
    try (TcpStoreServer late = new TcpStoreServer(null, server.getPort(), JobToken.NONE)) {
      assertThat(late.port()).isEqualTo(server.getPort());
    }
  }
}
