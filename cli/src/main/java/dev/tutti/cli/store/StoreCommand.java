package dev.tutti.cli.store;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.StoreTimeoutException;
import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.cluster.AeronClusterServer;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Notice;
import dev.tutti.cli.process.Signals;
import dev.tutti.cli.process.Terminal;
import dev.tutti.spi.HostPort;
import dev.tutti.spi.Printable;
import java.io.IOException;
import java.net.InetAddress;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;

/** The command store, which serves a store, and inspects one. */
@Command(
    name = "store",
    description = "Serves a store (TCP or Aeron), or reads and writes the keys of a running one.",
    descriptionHeading = "%n",
    parameterListHeading = "%n",
    optionListHeading = "%nOptions:%n",
    commandListHeading = "%nCommands:%n")
public final class StoreCommand implements Runnable {
  private static final int ROUND_TRIPS = 200;
  private static final Duration LOOK = Duration.ofMillis(100);

  @Option(
      names = "--at",
      paramLabel = "URL",
      scope = ScopeType.INHERIT,
      description =
          "URL of the store: tcp://host:29500, aeron://host:29500 or"
              + " aeron-cluster://a:29500,b:29500,c:29500. Default: from TUTTI_STORE, MASTER_ADDR"
              + " and MASTER_PORT.")
  private @Nullable String at;

  @Option(
      names = "--timeout",
      paramLabel = "TIME",
      scope = ScopeType.INHERIT,
      description = "Timeout, such as 500ms, 5s or 10m; without a unit, in seconds. Default: 30s.")
  private Duration timeout = Duration.ofSeconds(30);

  @Spec private CommandSpec spec = CommandSpec.create();

  private final Terminal terminal;
  private final Settings settings;

  public StoreCommand(Terminal terminal, Settings settings) {
    this.terminal = terminal;
    this.settings = settings;
  }

  /** Prints the help; without a subcommand there is nothing else to do. */
  @Override
  public void run() {
    spec.commandLine().usage(spec.commandLine().getOut());
  }

  private String url() {
    return at == null ? StoreAddress.ofEnvironment(settings) : at;
  }

  private void with(Consumer<Store> body) {
    String url = url();
    try (Store store = connected(url, timeout)) {
      body.accept(store);
    }
  }

  private Store connected(String url, Duration limit) {
    String found = at == null ? " (from TUTTI_STORE, MASTER_ADDR and MASTER_PORT);" : ";";
    String what = "the store at " + url + found + " 'tutti store serve' starts one";
    try (Notice _ = notice(what)) {
      return StoreAddress.connect(url, limit, settings);
    }
  }

  /** Reports on standard error what is being waited for, if the wait takes long. */
  private Notice notice(String what) {
    String limit = Notice.atMost(timeout);
    return Notice.afterPatience(
        () -> terminal.err().println("tutti store: waiting " + limit + " for " + what));
  }

  private Notice noticeOfKeys(List<String> keys) {
    return notice((keys.size() == 1 ? "the key " : "the keys ") + String.join(", ", keys));
  }

  private void print(byte[] value) {
    terminal.out().println(Printable.lines(new String(value, UTF_8)));
  }

  @Command(
      name = "serve",
      description =
          "Serves a store until the process is stopped, and prints its URL. It listens on the host"
              + " of --at, or on all interfaces at 0.0.0.0; port 0 picks a free port. With"
              + " aeron-cluster, it runs one member, which takes its UDP port and the next four.")
  void serve(
      @Option(
              names = "--member",
              paramLabel = "N",
              description = "Number of this member of an aeron-cluster, from 0.")
          @Nullable Integer member,
      @Option(
              names = "--data",
              paramLabel = "DIR",
              description = "Directory for the log and the snapshots of this member.")
          @Nullable Path data)
      throws IOException, InterruptedException {
    String url = url();
    if (StoreAddress.isCluster(url)) {
      serveMember(url, member, data);
      return;
    }
    if (member != null || data != null) {
      throw new IllegalArgumentException(
          "--member and --data apply only to --at aeron-cluster://...");
    }
    StoreAddress place = StoreAddress.parse(url);
    InetAddress address =
        place.host().equals("0.0.0.0") ? null : InetAddress.getByName(place.host());
    CountDownLatch ended = new CountDownLatch(1);
    try (StoreKind.Served served = place.kind().serve(address, place.port(), settings);
        Signals _ = Signals.handle(_ -> ended.countDown())) {
      HostPort there = new HostPort(place.host(), served.port());
      terminal.out().println(place.kind().scheme() + "://" + there);
      awaitEnd(ended, served.running(), "the store server");
    }
  }

  private static void awaitEnd(CountDownLatch ended, BooleanSupplier running, String what)
      throws InterruptedException {
    while (!ended.await(1, TimeUnit.SECONDS)) {
      if (!running.getAsBoolean()) {
        throw new LaunchException(1, what + " stopped because of an error");
      }
    }
  }

  private void serveMember(String url, @Nullable Integer member, @Nullable Path data)
      throws InterruptedException {
    if (member == null || data == null) {
      throw new IllegalArgumentException("a member of a cluster needs --member N and --data DIR");
    }
    CountDownLatch ended = new CountDownLatch(1);
    AeronStoreOptions options = AeronStoreOptions.of("localhost", 0, settings);
    try (AeronClusterServer server =
            new AeronClusterServer(URI.create(url).getRawAuthority(), member, data, options);
        Signals _ = Signals.handle(_ -> ended.countDown())) {
      terminal.out().println(url);
      awaitEnd(ended, server::isRunning, "member " + member);
    }
  }

  @Command(name = "get", description = "Waits for a key and prints its value.")
  void get(@Parameters(paramLabel = "KEY", converter = KeyConverter.class) String key) {
    with(
        store -> {
          try (Notice _ = noticeOfKeys(List.of(key))) {
            print(store.get(key));
          }
        });
  }

  @Command(name = "set", description = "Sets a key to a string.")
  void set(
      @Parameters(paramLabel = "KEY", converter = KeyConverter.class) String key,
      @Parameters(paramLabel = "VALUE") String value) {
    with(store -> store.set(key, value));
  }

  @Command(name = "add", description = "Adds to a counter and prints its new value.")
  void add(
      @Parameters(paramLabel = "KEY", converter = KeyConverter.class) String key,
      @Parameters(paramLabel = "N", arity = "0..1", defaultValue = "1") long delta) {
    with(store -> terminal.out().println(store.add(key, delta)));
  }

  @Command(name = "wait", description = "Waits until all keys exist.")
  void await(
      @Parameters(paramLabel = "KEY", converter = KeyConverter.class, arity = "1..*")
          List<String> keys) {
    with(
        store -> {
          try (Notice _ = noticeOfKeys(keys)) {
            store.await(keys);
          }
        });
  }

  @Command(
      name = "watch",
      description = "Prints the value of a key whenever it changes; checks 10 times a second.")
  void watch(
      @Parameters(paramLabel = "KEY", converter = KeyConverter.class) String key,
      @Option(
              names = "--count",
              paramLabel = "N",
              defaultValue = "0",
              description = "Stop after N values.")
          int count) {
    with(store -> watch(store, key, count));
  }

  private void watch(Store store, String key, int count) {
    byte @Nullable [] last = null;
    for (int seen = 0; count == 0 || seen < count; ) {
      byte[] now = null;
      try {
        now = store.get(key, LOOK);
      } catch (StoreTimeoutException e) {
        last = null;
      }
      if (now != null && !Arrays.equals(now, last)) {
        print(now);
        if (terminal.out().checkError()) {
          return;
        }
        last = now;
        seen++;
      } else if (now != null) {
        pause();
      }
    }
  }

  private static void pause() {
    try {
      Thread.sleep(LOOK);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new LaunchException(1, "interrupted", e);
    }
  }

  @Command(name = "keys", description = "Prints all keys, sorted.")
  void keys() {
    with(store -> store.listKeys().forEach(key -> terminal.out().println(Printable.line(key))));
  }

  @Command(name = "stat", description = "Prints the number of keys and the round-trip time.")
  void stat() {
    with(
        store -> {
          long[] nanos = new long[ROUND_TRIPS];
          for (int i = 0; i < ROUND_TRIPS; i++) {
            long start = System.nanoTime();
            store.check(List.of("tutti/stat"));
            nanos[i] = System.nanoTime() - start;
          }
          Arrays.sort(nanos);
          terminal.out().println("store " + store);
          terminal.out().println("keys " + store.keyCount());
          terminal
              .out()
              .println(
                  String.format(
                      Locale.ROOT,
                      "round trip p50 %.1f us, p99 %.1f us",
                      nanos[ROUND_TRIPS / 2] / 1e3,
                      nanos[ROUND_TRIPS * 99 / 100] / 1e3));
        });
  }
}
