package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Store;
import dev.tutti.aeron.SteppedClocks.Counter;
import dev.tutti.aeron.SteppedClocks.Stepped;
import dev.tutti.store.JobToken;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Steps the wall clock of servers and clients, each a process of its own into which a library is
 * preloaded.
 */
@Timeout(600)
class SteppedClockTest {
  private static final Duration LONG = Duration.ofSeconds(100);
  private static final long YEAR = 365 * 24 * 3600L;

  @TempDir private Path directory;

  private SteppedClocks clocks;

  @BeforeEach
  void compile() throws Exception {
    clocks = new SteppedClocks(directory);
  }

  private Stepped start(String name, String role, int port) throws Exception {
    return clocks.new Stepped(name, all -> StoreChild.start(role, port, all));
  }

  private AeronStoreOptions options(int port) {
    return AeronStoreOptions.of("127.0.0.1", port)
        .withDirectory(directory)
        .withToken(JobToken.NONE)
        .withTimeout(LONG);
  }

  /** A server with a client in another process and one in this. */
  private final class Served implements AutoCloseable {
    final long seconds;
    final Stepped server;
    final Stepped client;
    final AeronStore store;
    final Counter counter;
    final int port;

    Served(long seconds) throws Exception {
      this.seconds = seconds;
      server = start("server" + seconds, "serve", 0);
      port = Integer.parseInt(server.child.line().substring("READY ".length()));
      client = start("client" + seconds, "wait", port);
      assertThat(client.child.line()).isEqualTo("READY true");
      store = new AeronStore(options(port));
      counter = new Counter(store);
    }

    void requireClientIsDone() throws Exception {
      store.set("go", "");
      assertThat(client.child.line()).as("client stepped by %d s", seconds).isEqualTo("DONE");
      try (Store later = new AeronStore(options(port).withLease(Duration.ofSeconds(6)))) {
        assertThat(later.add("here", 0)).isEqualTo(1);
      }
    }

    @Override
    public void close() throws IOException {
      store.close();
      client.close();
      server.close();
    }
  }

  @Test
  void serversAndTheirClientsGoOn() throws Exception {
    try (Served little = new Served(40);
        Served forth = new Served(3600);
        Served back = new Served(-3600);
        Served far = new Served(YEAR)) {
      List<Served> all = List.of(little, forth, back, far);
      Counter[] counters = all.stream().map(each -> each.counter).toArray(Counter[]::new);
      for (Served each : all) {
        each.server.step(each.seconds);
      }
      SteppedClocks.call(counters);
      for (Served each : all) {
        each.server.step(0);
        each.client.step(each.seconds);
      }
      SteppedClocks.call(counters);
      for (Served each : all) {
        each.requireClientIsDone();
      }
    }
  }
}
