package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreClosedException;
import dev.tutti.gloo.TestContexts;
import dev.tutti.gloo.transport.connect.PeerAddress;
import dev.tutti.gloo.transport.connect.Protection;
import dev.tutti.spi.BackendContext;
import dev.tutti.store.HashStore;
import dev.tutti.store.PrefixStore;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.spi.SelectorProvider;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Tests a wait for connections in a group that has failed meanwhile and closes its store. */
class SetUpEndTest {
  @Test
  void theEndOfSetUpEndsTheWaitForConnections() throws Exception {
    PrefixStore store = new PrefixStore("group", new HashStore());
    BackendContext context = TestContexts.of(0, 2, store, Duration.ofMinutes(2));
    InetSocketAddress nowhere = new InetSocketAddress(InetAddress.ofLiteral("127.0.0.1"), 1);
    try (Transport transport =
        new Transport(context, Protection.of(context.settings()), SelectorProvider.provider())) {
      transport.pairs.expect(1, new PeerAddress(nowhere, -1, true, 0, 0), 1, true);
      store.close();
      long start = System.nanoTime();
      assertThatThrownBy(
              () ->
                  transport.pairs.awaitConnected(
                      context.store(), start + context.timeout().toNanos()))
          .isInstanceOf(StoreClosedException.class);
    }
  }
}
