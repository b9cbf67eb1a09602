package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.gloo.TestContexts;
import dev.tutti.gloo.transport.connect.Protection;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.PeerLostException;
import dev.tutti.store.HashStore;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.SelectorProvider;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class ConnectorTest {
  /** Gives the rank the port on which the peer listened, as the system does by chance. */
  @Test
  void aRankDoesNotTakeItselfForAPeerThatIsGone() throws Exception {
    BackendContext context = TestContexts.of(0, 2, new HashStore(), Duration.ofSeconds(60));
    SocketChannel channel =
        SocketChannel.open().bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    InetSocketAddress gone = (InetSocketAddress) channel.getLocalAddress();
    TestOperation receive = TestOperation.seconds(3600);
    try (Transport transport =
        new Transport(context, Protection.of(context.settings()), SelectorProvider.provider())) {
      new RawMessages(transport).receive(receive, 1, 3, RingRanks.filled(1, 0), 1);
      transport.progress.start(0);
      transport.progress.lock.lock();
      try {
        Connector.Route route = new Connector.Route(gone, 17, false);
        new Connector(transport.pairs, transport.pairs.get(1), route, channel).start();
        transport.progress.wakeSelector();
      } finally {
        transport.progress.lock.unlock();
      }
      assertThat(receive.parkUntilDone(receive.deadlineNanos())).isTrue();
      assertThat(receive.cause())
          .isInstanceOf(PeerLostException.class)
          .hasMessageContaining("rank 1 cannot be reached at 127.0.0.1 port " + gone.getPort());
    }
  }
}
