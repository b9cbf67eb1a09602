package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.store.JobToken;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests what happens to clients that arrive while a server closes. */
class ClosingServerTest {
  private static final Duration LONG = Duration.ofSeconds(60);

  /** A little less than a server's patience with a client that stays silent. */
  private static final Duration LESS_THAN_THE_PATIENCE = Duration.ofSeconds(9);

  @TempDir private Path directory;

  /**
   * Otherwise a client that arrives while a server closes waits for a media driver that is gone.
   */
  @Test
  void clientsThatComeWhileTheServerClosesAreSentAway() throws Exception {
    AeronStoreOptions options =
        AeronStoreOptions.of("127.0.0.1", 0).withDirectory(directory).withToken(JobToken.NONE);
    for (int round = 0; round < 10; round++) {
      List<Socket> sockets = new ArrayList<>();
      AeronStoreServer server = new AeronStoreServer(options);
      try {
        for (int i = 0; i < 100; i++) {
          sockets.add(new Socket(InetAddress.getLoopbackAddress(), server.port()));
        }
        FutureTask<Void> closing = new FutureTask<>(server::close, null);
        Thread.ofVirtual().start(closing);
        for (Socket socket : sockets) {
          socket.setSoTimeout((int) LONG.toMillis());
          long before = System.nanoTime();
          awaitEnd(socket);
          assertThat(System.nanoTime() - before).isLessThan(LESS_THAN_THE_PATIENCE.toNanos());
        }
        closing.get(60, TimeUnit.SECONDS);
      } finally {
        server.close();
        for (Socket socket : sockets) {
          socket.close();
        }
      }
    }
  }

  private static void awaitEnd(Socket socket) throws IOException {
    try {
      assertThat(socket.getInputStream().readAllBytes()).isEmpty();
    } catch (SocketException e) {
      assertThat(e).hasMessageContaining("reset"); // it had not been accepted yet
    }
  }
}
