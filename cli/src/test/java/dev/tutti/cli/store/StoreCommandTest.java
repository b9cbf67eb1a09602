package dev.tutti.cli.store;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.cli.Main;
import dev.tutti.cli.process.Notice;
import dev.tutti.cli.process.Terminal;
import dev.tutti.cli.run.CommandProcess;
import dev.tutti.shared.FreePorts;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreServer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.Socket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

@Timeout(600)
@Order(1)
@Execution(ExecutionMode.CONCURRENT)
class StoreCommandTest {
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();

  /** Runs a command that must succeed, and returns the lines that it prints. */
  private List<String> lines(Map<String, String> environment, String... arguments) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    assertThat(tutti(out, environment, with("--timeout=4m", arguments)))
        .as(() -> err.toString(UTF_8))
        .isZero();
    return out.toString(UTF_8).lines().toList();
  }

  private static String[] with(String last, String... arguments) {
    return Stream.concat(Stream.of(arguments), Stream.of(last)).toArray(String[]::new);
  }

  /**
   * Runs a command that waits for what does not come, until it says for what, and interrupts it.
   */
  private void assertSays(String text, Map<String, String> environment, String... command)
      throws InterruptedException {
    err.reset();
    String[] arguments = with("--timeout=100s", command);
    Thread waiting =
        Thread.ofPlatform()
            .daemon()
            .start(() -> tutti(new ByteArrayOutputStream(), environment, arguments));
    while (err.size() == 0 && waiting.isAlive()) {
      LockSupport.parkNanos(1_000_000);
    }
    waiting.interrupt();
    waiting.join();
    assertThat(err.toString(UTF_8)).startsWith("tutti store: waiting up to 100 s for " + text);
  }

  private int tutti(OutputStream out, Map<String, String> environment, String... arguments) {
    Terminal terminal =
        new Terminal(
            new PrintStream(out, true, UTF_8), new PrintStream(err, true, UTF_8), false, false);
    List<String> all = new ArrayList<>(List.of("store"));
    all.addAll(List.of(arguments));
    return Main.execute(terminal, environment, all.toArray(String[]::new));
  }

  @ParameterizedTest
  @EnumSource
  void everyCommandWorks(StoreKind kind) {
    Settings settings = Settings.ofEnvironment(Map.of());
    try (StoreKind.Served served = kind.serve(InetAddress.getLoopbackAddress(), 0, settings)) {
      Map<String, String> environment =
          Map.of(
              "TUTTI_STORE", kind.scheme(),
              "MASTER_ADDR", "127.0.0.1",
              "MASTER_PORT", Integer.toString(served.port()));
      assertThat(lines(environment, "set", "key", "välue")).isEmpty();
      assertThat(lines(environment, "get", "key")).containsExactly("välue");
      assertThat(lines(environment, "add", "count")).containsExactly("1");
      assertThat(lines(environment, "add", "count", "41")).containsExactly("42");
      assertThat(lines(environment, "wait", "key", "count")).isEmpty();
      assertThat(lines(environment, "watch", "key", "--count=1")).containsExactly("välue");
      assertThat(lines(environment, "keys")).containsExactly("count", "key");
      assertThat(lines(environment, "stat"))
          .hasSize(3)
          .contains("keys 2")
          .anyMatch(line -> line.matches("round trip p50 [0-9.]+ us, p99 [0-9.]+ us"));
      assertThat(tutti(new ByteArrayOutputStream(), environment, "get", "no", "--timeout=4s"))
          .isEqualTo(1);
      assertThat(err.toString(UTF_8))
          .contains("tutti store get: wait timeout after 4000 ms, 1 of 1 keys missing: 'no'");
    }
  }

  /** Prints what a stranger has put into the store. */
  @Test
  void whatComesFromTheStoreDoesNotControlTheTerminal() {
    try (TcpStoreServer server = new TcpStoreServer(InetAddress.getLoopbackAddress(), 0);
        Store stranger = new TcpStore("127.0.0.1", server.port())) {
      stranger.set("evil\u001b[2J\nkey", "two\nlines\u001b]0;title\u0007\u202e".getBytes(UTF_8));
      String at = "--at=tcp://127.0.0.1:" + server.port();
      assertThat(lines(Map.of(), "get", "evil\u001b[2J\nkey", at))
          .containsExactly("two", "lines\\x1b]0;title\\x07\\u202e");
      assertThat(lines(Map.of(), "keys", at)).containsExactly("evil\\x1b[2J\\nkey");
    }
  }

  @Test
  void saysWhichStoreItWaitsFor() throws Exception {
    try (Socket bound = new Socket()) {
      // No other process can take this port, and nobody listens on it.
      bound.bind(new InetSocketAddress(InetAddress.ofLiteral("127.0.0.1"), 0));
      String port = Integer.toString(bound.getLocalPort());
      String url = "tcp://127.0.0.1:" + port;
      assertSays(
          "the store at " + url + "; 'tutti store serve' starts one\n",
          Map.of(),
          "get",
          "key",
          "--at",
          url);
      assertThat(err.toString(UTF_8).lines()).hasSize(2);
      assertSays(
          "the store at " + url + " (from TUTTI_STORE, MASTER_ADDR and MASTER_PORT); ",
          Map.of("MASTER_PORT", port),
          "keys");
    }
  }

  @Test
  void saysWhichKeysItWaitsFor() throws Exception {
    InetAddress loopback = InetAddress.getLoopbackAddress();
    Settings settings = Settings.ofEnvironment(Map.of());
    try (StoreKind.Served served = StoreKind.TCP.serve(loopback, 0, settings)) {
      Map<String, String> environment = Map.of("MASTER_PORT", Integer.toString(served.port()));
      assertSays("the key no\n", environment, "get", "no");
      assertSays("the keys no, neither\n", environment, "wait", "no", "neither");
      err.reset();
      long start = System.nanoTime();
      lines(environment, "set", "key", "value");
      lines(environment, "get", "key");
      boolean isAnnounced = err.size() > 0;
      Duration took = Duration.ofNanos(System.nanoTime() - start);
      assertThat(isAnnounced && took.compareTo(Notice.PATIENCE) < 0)
          .as("after %s: %s", took, err)
          .isFalse();
    }
  }

  @ParameterizedTest
  @EnumSource
  void findsAStoreAtAnIpv6AddressByTheVariables(StoreKind kind) throws Exception {
    InetAddress loopback = InetAddress.ofLiteral("::1");
    assumeThat(NetworkInterface.getByInetAddress(loopback)).as("this machine has IPv6").isNotNull();
    Settings settings = Settings.ofEnvironment(Map.of());
    try (StoreKind.Served served = kind.serve(loopback, 0, settings)) {
      for (String host : List.of("::1", "[::1]")) {
        Map<String, String> environment =
            Map.of(
                "TUTTI_STORE", kind.scheme(),
                "MASTER_ADDR", host,
                "MASTER_PORT", Integer.toString(served.port()));
        assertThat(lines(environment, "add", "count", "1")).hasSize(1);
      }
    }
  }

  @Test
  void endsToWatchWhereNobodyReadsAnyMore() {
    OutputStream closed =
        new OutputStream() {
          @Override
          public void write(int octet) throws IOException {
            throw new IOException("Broken pipe");
          }
        };
    Settings settings = Settings.ofEnvironment(Map.of());
    InetAddress loopback = InetAddress.getLoopbackAddress();
    try (StoreKind.Served served = StoreKind.TCP.serve(loopback, 0, settings)) {
      Map<String, String> environment =
          Map.of("MASTER_ADDR", "127.0.0.1", "MASTER_PORT", Integer.toString(served.port()));
      lines(environment, "set", "key", "value");
      assertThat(tutti(closed, environment, "watch", "key", "--timeout=4m")).isOne();
    }
  }

  @ParameterizedTest
  @EnumSource
  void servesUntilItIsEnded(StoreKind kind) throws Exception {
    try (CommandProcess server =
        CommandProcess.start("store", "serve", "--at", kind.scheme() + "://127.0.0.1:0")) {
      String prefix = kind.scheme() + "://127.0.0.1:";
      String url = server.awaitLine(line -> line.startsWith(prefix));
      assertThat(url).isNotEqualTo(prefix + "0");
      assertThat(lines(Map.of(), "add", "n", "3", "--at", url)).containsExactly("3");
      assertThat(lines(Map.of(), "--at", url, "add", "n", "4")).containsExactly("7");
      new ProcessBuilder("kill", Long.toString(server.pid())).start().waitFor(60, TimeUnit.SECONDS);
      assertThat(server.exitCode()).isZero();
    }
  }

  @Tag("full")
  @Test
  void aMemberOfAClusterGoesOnFromItsFolder(@TempDir Path data) throws Exception {
    String url = "aeron-cluster://127.0.0.1:" + FreePorts.consecutive(5);
    String job = url + "/job";
    String[] serve = {"store", "serve", "--at", url, "--member=0", "--data=" + data};
    for (int round = 1; round <= 2; round++) {
      try (CommandProcess server = CommandProcess.start(serve)) {
        server.await(lines -> lines.contains(url));
        assertThat(lines(Map.of(), "add", "n", "--at", job)).containsExactly("" + round);
        assertThat(lines(Map.of(), "keys", "--at", url)).containsExactly("job/n");
        new ProcessBuilder("kill", Long.toString(server.pid()))
            .start()
            .waitFor(60, TimeUnit.SECONDS);
        assertThat(server.exitCode()).isZero();
      }
    }
    assertThat(tutti(new ByteArrayOutputStream(), Map.of(), "serve", "--at", url))
        .isEqualTo(Main.USAGE);
    assertThat(err.toString(UTF_8)).contains("a member of a cluster needs --member N and --data");
  }

  @Test
  void badPlacesAreNamed() {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    assertThat(tutti(out, Map.of(), "keys", "--at", "localhost:1")).isEqualTo(Main.USAGE);
    assertThat(tutti(out, Map.of(), "keys", "--at", "file://localhost:1")).isEqualTo(Main.USAGE);
    assertThat(err.toString(UTF_8))
        .contains(
            "the URL of a store must be tcp://host:port, aeron://host:port or"
                + " aeron-cluster://a:p,b:p,c:p, not 'localhost:1'")
        .contains(
            "cannot serve a store with the scheme 'file'; the schemes are tcp, aeron,"
                + " aeron-cluster\n");
  }
}
