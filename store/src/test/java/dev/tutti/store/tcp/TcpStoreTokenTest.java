package dev.tutti.store.tcp;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.store.JobToken;
import java.net.InetAddress;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.logging.Level;
import org.junit.jupiter.api.Test;

/** Tests the token of a job on the sockets of this machine; the rest is simulated. */
class TcpStoreTokenTest {
  private static final JobToken TOKEN = JobToken.of("the token of this job");

  @Test
  void whoHasTheTokenUsesTheStore() throws Exception {
    try (TcpStoreServer server = server(TOKEN);
        TcpStore one = new TcpStore(options(server.port()));
        TcpStore other = new TcpStore(options(server.port()));
        ExecutorService threads = Executors.newCachedThreadPool()) {
      Future<byte[]> value = threads.submit(() -> one.get("key"));
      other.set("key", "value");
      assertThat(value.get()).asString(UTF_8).isEqualTo("value");
    }
  }

  private static TcpStoreServer server(JobToken token) {
    return new TcpStoreServer(InetAddress.getLoopbackAddress(), 0, token);
  }

  private static TcpStoreOptions options(int port) {
    return TcpStoreOptions.of("127.0.0.1", port).withToken(TOKEN);
  }

  @Test
  void aServerForAllSaysSoUnlessItIsOnLoopback() {
    LogCapture log = new LogCapture();
    try (TcpStoreServer open = new TcpStoreServer(null, 0, JobToken.NONE);
        TcpStoreServer closed = new TcpStoreServer(null, 0, TOKEN);
        TcpStoreServer local = server(JobToken.NONE)) {
      assertThat(log.messages(open.port()))
          .isEqualTo(
              List.of(
                  ("store server on port %d accepts any client that reaches it; TUTTI_TOKEN is"
                          + " not set")
                      .formatted(open.port())));
      assertThat(log.levels(open.port())).containsExactly(Level.WARNING);
      assertThat(log.messages(closed.port())).isEmpty();
      assertThat(log.messages(local.port())).isEmpty();
    } finally {
      log.close();
    }
  }
}
