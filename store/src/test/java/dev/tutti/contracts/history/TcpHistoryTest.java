package dev.tutti.contracts.history;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.contracts.TestTier;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreServer;
import java.net.InetAddress;
import org.junit.jupiter.api.Test;

/** Tests what clients of a store over TCP observe when its server or a connection goes away. */
class TcpHistoryTest {
  private static final int CALLS = TestTier.isFast() ? 300 : 2000;
  private static final int FAULTS = TestTier.isFast() ? 3 : 20;

  private static HistoryRun run(int seed, int port) {
    return new HistoryRun(seed, 4, false, () -> new TcpStore("127.0.0.1", port));
  }

  private static TcpStoreServer serve(int port) {
    return new TcpStoreServer(InetAddress.getLoopbackAddress(), port);
  }

  // @start region="run"
  @Test
  void aCutConnectionLosesNothingThatWasAnswered() throws Exception {
    try (TcpStoreServer server = serve(0);
        CutConnections way = new CutConnections(server.port());
        HistoryRun run = run(1, way.port())) {
      for (int i = 0; i < FAULTS; i++) {
        run.awaitAnswers(CALLS);
        way.cut();
      }
      run.awaitAnswers(CALLS);
      assertThat(run.end()).isEmpty();
      assertThat(way.accepted()).isGreaterThan(FAULTS);
    }
  }

  // @end

  @Test
  @SuppressWarnings("try") // the server ends before its clients
  void aServerThatEndsHasAnsweredRightAndTheNextOneStartsEmpty() throws Exception {
    int port = 0;
    for (int i = 0; i < FAULTS; i++) {
      try (TcpStoreServer server = serve(port);
          HistoryRun run = run(i, server.port())) {
        port = server.port();
        run.awaitAnswers(CALLS);
        server.close();
        run.stop();
        assertThat(HistoryChecker.violations(run.history())).isEmpty();
      }
    }
  }
}
