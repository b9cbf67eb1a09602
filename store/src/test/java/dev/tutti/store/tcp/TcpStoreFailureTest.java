package dev.tutti.store.tcp;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.shared.FreePorts;
import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import dev.tutti.store.tcp.ScriptedServer.Opened;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.nio.channels.spi.SelectorProvider;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/**
 * Tests what of a client and of the opening of stores depends on the system; the rest is simulated.
 */
@Order(1)
@Execution(ExecutionMode.CONCURRENT)
class TcpStoreFailureTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final Duration SHORT = Duration.ofMillis(300);

  /** The longest time that a call of a short time-out may take on a busy machine. */
  private static final Duration SOON = Duration.ofSeconds(30);

  /** The fields of a line of /proc/net/tcp with the addresses of a connection. */
  private static final int LOCAL = 1;

  private static final int REMOTE = 2;

  private final ExecutorService threads = Executors.newCachedThreadPool();

  @AfterEach
  void endThreads() {
    threads.shutdownNow();
  }

  private static TcpStoreOptions options(int port) {
    return TcpStoreOptions.of("127.0.0.1", port).withTimeout(LONG);
  }

  @Test
  void givesUpOnAHostThatIsNone() {
    assertThatThrownBy(
            () -> new TcpStore(TcpStoreOptions.of("no-such-host.invalid", 1).withTimeout(SHORT)))
        .isInstanceOf(StoreConnectionException.class)
        .hasMessageContaining("no-such-host.invalid");
  }

  @Test
  void aValueTakesMemoryOnlyAsItComes() throws Exception {
    try (ScriptedServer server = new ScriptedServer(SelectorProvider.provider(), Time.SYSTEM);
        Opened opened = server.openTutti(options(server.port()))) {
      Future<Long> taken =
          server.client(
              () -> {
                var threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
                long before = threads.getCurrentThreadAllocatedBytes();
                assertThatThrownBy(() -> opened.store().get("key", LONG))
                    .isInstanceOf(StoreConnectionException.class)
                    .hasMessageContaining("closed the connection");
                return threads.getCurrentThreadAllocatedBytes() - before;
              });
      // The length of a value of 1 GiB, and some of its bytes.
      opened.main().expectRead("/key").send("00 00 00 40 00 00 00 00").send(new byte[1000]);
      opened.main().close();
      assertThat(taken.get()).isBetween(1L << 20, 16L << 20);
    }
  }

  @Test
  void aBarrierEndsThoughItsConnectionIsAcceptedByAStoppedServer() throws Exception {
    Process child = ServerChild.start("the token of this job");
    try {
      int port = Integer.parseInt(child.inputReader().readLine());
      JobToken token = JobToken.of("the token of this job");
      try (TcpStore store = new TcpStore(options(port).withToken(token))) {
        assertThat(store.add("number", 1)).isEqualTo(1);
        Process stop = new ProcessBuilder("kill", "-STOP", Long.toString(child.pid())).start();
        assertThat(stop.waitFor(4, TimeUnit.MINUTES)).isTrue();
        assertThat(stop.exitValue()).isZero();
        long start = System.nanoTime();
        assertThatThrownBy(() -> store.barrier("key", 2, SHORT))
            .isInstanceOf(StoreTimeoutException.class);
        assertThat(Duration.ofNanos(System.nanoTime() - start)).isBetween(SHORT, SOON);
      }
    } finally {
      child.destroyForcibly();
    }
  }

  @Test
  void bothSidesShowAfterAMinuteOfSilenceThatAConnectionIsUsed() throws Exception {
    try (TcpStoreServer server = new TcpStoreServer(InetAddress.getLoopbackAddress(), 0);
        TcpStore store = new TcpStore(options(server.port()))) {
      assertThat(store.add("key", 1)).isEqualTo(1);
      // A connection that waits for an acknowledgment has another timer until it arrives.
      List<Long> atServer = keepAliveSeconds(LOCAL, server.port());
      while (atServer.isEmpty()) {
        Thread.onSpinWait();
        atServer = keepAliveSeconds(LOCAL, server.port());
      }
      List<Long> atClient = keepAliveSeconds(REMOTE, server.port());
      while (atClient.isEmpty()) {
        Thread.onSpinWait();
        atClient = keepAliveSeconds(REMOTE, server.port());
      }
      assertThat(atServer).allMatch(left -> left <= 60);
      assertThat(atClient).allMatch(left -> left <= 60);
    }
  }

  /** Returns when the next keep-alive is due on connections with a port on one side. */
  private static List<Long> keepAliveSeconds(int side, int port) throws IOException {
    String suffix = ":%04X".formatted(port);
    List<Long> seconds = new ArrayList<>();
    for (String table : List.of("/proc/net/tcp", "/proc/net/tcp6")) {
      if (!Files.exists(Path.of(table))) {
        continue;
      }
      for (String line : Files.readAllLines(Path.of(table))) {
        // sl local remote state queues timer:when, in hundredths of a second
        String[] fields = line.strip().split("\\s+");
        if (fields[side].endsWith(suffix)
            && fields[3].equals("01")
            && fields[5].startsWith("02:")) {
          seconds.add(Long.parseLong(fields[5].substring(3), 16) / 100);
        }
      }
    }
    return seconds;
  }

  @Test
  void theServingProcessWaitsForAllWorkers() throws Exception {
    int port = FreePorts.one();
    List<Callable<TcpStore>> ranks = new ArrayList<>();
    ranks.add(() -> new TcpStore(options(port).withServer(true).withWorldSize(3)));
    ranks.add(() -> new TcpStore(options(port).withWorldSize(3)));
    ranks.add(() -> new TcpStore(options(port).withWorldSize(3)));
    List<TcpStore> stores = new ArrayList<>();
    for (Future<TcpStore> rank : threads.invokeAll(ranks)) {
      stores.add(rank.get());
    }
    stores.get(1).set("key", "value");
    assertThat(stores.get(0).get("key")).asString(UTF_8).isEqualTo("value");
    assertThat(stores.get(2).keyCount()).isEqualTo(1);
    assertThat(stores.get(2).listKeys()).containsExactly("key");
    stores.reversed().forEach(TcpStore::close);
  }

  @Test
  void optionsAreChecked() {
    assertThatThrownBy(() -> TcpStoreOptions.of("", 1)).hasMessageContaining("host");
    assertThatThrownBy(() -> TcpStoreOptions.of("h", 70000)).hasMessageContaining("70000");
    assertThatThrownBy(() -> TcpStoreOptions.of("h", -1)).hasMessageContaining("-1");
    assertThatThrownBy(() -> TcpStoreOptions.of("h", 1).withWorldSize(-2))
        .hasMessageContaining("-2");
  }

  @Test
  void sixtyFourClientsCountTogether() throws Exception {
    int clients = 64;
    long each = 40;
    try (TcpStoreServer server = new TcpStoreServer(0);
        TcpStore first = new TcpStore(options(server.port()))) {
      List<Callable<Integer>> all = new ArrayList<>();
      for (int i = 0; i < clients; i++) {
        int rank = i;
        all.add(
            () -> {
              try (TcpStore store = new TcpStore(options(server.port()))) {
                for (int k = 0; k < each; k++) {
                  store.add("count", 1);
                  store.set("rank" + rank, "value" + k);
                }
                store.barrier("all", clients, LONG);
                int next = (rank + 1) % clients;
                assertThat(store.get("rank" + next, LONG))
                    .asString(UTF_8)
                    .isEqualTo("value" + (each - 1));
                return rank;
              }
            });
      }
      for (Future<Integer> rank : threads.invokeAll(all)) {
        rank.get();
      }
      assertThat(first.add("count", 0)).isEqualTo(clients * each);
    }
  }
}
