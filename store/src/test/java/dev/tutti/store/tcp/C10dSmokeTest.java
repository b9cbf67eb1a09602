package dev.tutti.store.tcp;

import static dev.tutti.store.tcp.RawClient.request;
import static dev.tutti.store.tcp.ScriptedServer.ended;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.spi.Time;
import dev.tutti.store.tcp.ScriptedServer.Opened;
import java.nio.channels.spi.SelectorProvider;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

/**
 * Tests the client beside a PyTorch server on the sockets of this machine; the rest is simulated.
 */
class C10dSmokeTest {
  @Test
  void aClientSetsAndAdds() throws Exception {
    try (ScriptedServer server = new ScriptedServer(SelectorProvider.provider(), Time.SYSTEM);
        Opened opened = server.open(TcpStoreOptions.of("127.0.0.1", server.port()))) {
      opened.store().set("k", "val");
      opened.main().expect(request(Wire.SET, "/k", "val"));
      Future<Long> sum = server.client(() -> opened.store().add("n", 5));
      opened.main().expect(request(Wire.ADD, "/n", 5L)).send("07 00 00 00 00 00 00 00");
      assertThat(ended(sum)).isEqualTo(7);
    }
  }
}
