package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests that clients and strangers cannot make a server end or fill its log. */
@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class AeronStoreExhaustionTest {
  @TempDir Path folder;

  private static AeronStoreOptions options(int port) {
    return AeronStoreOptions.of("127.0.0.1", port)
        .withToken(JobToken.NONE)
        .withTimeout(Duration.ofMinutes(2));
  }

  private static int port(StoreChild child) throws Exception {
    return Integer.parseInt(child.line().split(" ")[1]);
  }

  private static Socket connect(int port) throws IOException {
    Socket socket = new Socket(InetAddress.getLoopbackAddress(), port);
    socket.setSoTimeout(120_000);
    return socket;
  }

  private static boolean refusesClients(int port) {
    try (Socket _ = connect(port)) {
      return false;
    } catch (ConnectException e) {
      return true;
    } catch (IOException e) {
      return false; // accepted by a copy of the socket, which was then closed
    }
  }

  @Test
  void refusesWhatTakesMoreThanItsShareOfTheHeap() throws Exception {
    try (StoreChild child = StoreChild.start("serve", 0);
        AeronStore greedy = new AeronStore(options(port(child)))) {
      List<String> keys = new ArrayList<>();
      for (int i = 0; i < 20; i++) {
        keys.add("key " + i);
      }
      List<byte[]> values = Collections.nCopies(20, new byte[1 << 20]);
      assertThatThrownBy(() -> greedy.multiSet(keys, values))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("an eighth of this server's heap");
      int stored = 0;
      StoreException refusal = null;
      while (refusal == null && stored < 128) {
        try {
          greedy.set("value " + stored, new byte[1 << 20]);
          stored++;
        } catch (StoreException e) {
          refusal = e;
        }
      }
      assertThat(refusal).hasMessageContaining("three eighths of its heap");
      assertThat(stored).isBetween(40, 48);
      assertThat(greedy.add("alive", 1)).isEqualTo(1);
      for (int i = 0; i < 10; i++) {
        greedy.deleteKey("value " + i);
      }
      greedy.set("large", new byte[Store.MAX_VALUE_BYTES]);
      assertThat(greedy.get("large")).hasSize(Store.MAX_VALUE_BYTES);
    }
  }

  @Test
  void logsAFloodOfBadClientsInAFewLines() throws Exception {
    List<String> lines = new CopyOnWriteArrayList<>();
    Handler handler =
        new Handler() {
          @Override
          public void publish(LogRecord entry) {
            lines.add(entry.getMessage());
          }

          @Override
          public void flush() {}

          @Override
          public void close() {}
        };
    Logger logger = Logger.getLogger(AeronStoreServer.class.getName());
    logger.addHandler(handler);
    logger.setUseParentHandlers(false);
    try (AeronStoreServer server =
            new AeronStoreServer(options(0), InetAddress.getLoopbackAddress());
        AeronStore good = new AeronStore(options(server.port()))) {
      byte[] bad = "GET / HTTP/1.1".getBytes(StandardCharsets.US_ASCII);
      for (int i = 0; i < 2000; i++) {
        try (Socket socket = connect(server.port())) {
          socket.getOutputStream().write(bad);
          assertThat(socket.getInputStream().readAllBytes()).startsWith('T', 'u', 't', 't', 'i');
        } catch (SocketException e) {
          assertThat(e).hasMessageMatching("(?i).*(reset|broken pipe|closed|aborted).*");
        }
      }
      assertThat(good.add("alive", 1)).isEqualTo(1);
      String mark = "port " + server.port() + " ";
      assertThat(lines.stream().filter(line -> line.contains(mark))).hasSizeBetween(3, 8);
    } finally {
      logger.setUseParentHandlers(true);
      logger.removeHandler(handler);
    }
  }

  @Test
  void silentConnectionsKeepNobodyOut() throws Exception {
    List<Socket> silent = new ArrayList<>();
    try (AeronStoreServer server =
        new AeronStoreServer(options(0), InetAddress.getLoopbackAddress())) {
      for (int i = 0; i < 1500; i++) {
        silent.add(connect(server.port()));
      }
      try (AeronStore good = new AeronStore(options(server.port()))) {
        assertThat(good.add("alive", 1)).isEqualTo(1);
      }
    } finally {
      for (Socket socket : silent) {
        socket.close();
      }
    }
  }

  @Test
  void servesOnWithoutDescriptorsAndAcceptsAgain() throws Exception {
    Path prlimit = Path.of("/usr/bin/prlimit");
    Assumptions.assumeTrue(Files.isExecutable(prlimit), "no prlimit to bound descriptors with");
    Path log = folder.resolve("log");
    List<String> by =
        List.of("sh", "-c", "exec \"$@\" 2> " + log, "sh", prlimit.toString(), "--nofile=200:200");
    List<Socket> many = new ArrayList<>();
    try (StoreChild child = StoreChild.start(by, "128m", "serve", 0)) {
      int port = port(child);
      try (AeronStore good = new AeronStore(options(port))) {
        assertThat(good.add("alive", 1)).isEqualTo(1);
        for (int i = 0; i < 300; i++) {
          many.add(connect(port));
        }
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
        while (!Files.readString(log).contains("cannot accept clients")) {
          assertThat(System.nanoTime()).as(Files.readString(log)).isLessThan(deadline);
          LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(5));
        }
        assertThat(good.add("alive", 1)).isEqualTo(2);
        for (Socket socket : many) {
          socket.close();
        }
        try (AeronStore next = new AeronStore(options(port).withLease(Duration.ofSeconds(7)))) {
          assertThat(next.add("alive", 1)).isEqualTo(3);
        }
      }
      assertThat(Files.readAllLines(log))
          .filteredOn(line -> line.contains("cannot accept"))
          .as("lines that do not only count how many more came")
          .filteredOn(line -> !line.matches(".* more.* in the last \\d+ s; the last one: .*"))
          .hasSizeLessThan(4);
    } finally {
      for (Socket socket : many) {
        socket.close();
      }
    }
  }

  @Test
  @SuppressWarnings("NullAway") // makes the thread fail
  @Tag("full")
  void endsForGoodWhereItsThreadEnds() throws Exception {
    try (AeronStoreServer server =
            new AeronStoreServer(options(0), InetAddress.getLoopbackAddress());
        AeronStore client = new AeronStore(options(server.port()))) {
      int port = server.port();
      client.set("key", "value");
      Thread failing =
          Thread.ofPlatform()
              .daemon()
              .start(() -> assertThatThrownBy(() -> server.forgetAllBut(null)).isNotNull());
      assertThatThrownBy(() -> client.await(List.of("never"))).isInstanceOf(StoreException.class);
      long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
      while (server.isRunning()) {
        assertThat(System.nanoTime()).isLessThan(deadline);
        Thread.onSpinWait();
      }
      // A process that is being started holds a copy of the server's socket for a moment.
      boolean refused =
          WaitStrategy.until(
              () -> refusesClients(port), deadline, TimeUnit.MILLISECONDS.toNanos(1), Time.SYSTEM);
      assertThat(refused).isTrue();
      assertThat(failing.join(Duration.ofMinutes(1))).isTrue();
    }
  }
}
