package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.peer.libtorch.PeerArguments;
import dev.tutti.peer.libtorch.PeerData;
import dev.tutti.peer.libtorch.PeerOracle;
import dev.tutti.peer.libtorch.PeerProcess;
import dev.tutti.peer.libtorch.PeerResult;
import dev.tutti.store.PrefixStore;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreServer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * A Gloo group in which some ranks are Tutti's, as threads here, and some libtorch's, as processes.
 */
final class MixedWorld implements AutoCloseable {
  /** What hosts the store: a server of some kind, or a file. */
  enum Host {
    TUTTI,
    LIBUV,
    LEGACY,
    FILE
  }

  /** Longer than the timeouts of the ranks, so that their reports of them are seen. */
  private static final Duration LIMIT = Duration.ofSeconds(90);

  private static final Duration TIMEOUT = Duration.ofSeconds(60);

  /** How long a whole script may take. */
  private static final Duration SCRIPT = Duration.ofMinutes(4);

  /** How long one round of all operations may take. */
  private static final Duration ROUND = Duration.ofMinutes(8);

  private final String ranks;
  private final boolean lazy;
  private final Settings settings;
  private final Map<Integer, PeerProcess> peers = new TreeMap<>();
  private final @Nullable TcpStoreServer server;
  private final int port;
  private final @Nullable Path file;
  private Duration limit = SCRIPT;

  /**
   * Starts the ranks of libtorch.
   *
   * @param ranks L for libtorch or T for Tutti, for each rank
   * @param host what hosts the store
   * @param lazy whether ranks connect on first use
   * @param namesAndValues the settings of Tutti's ranks
   */
  MixedWorld(String ranks, Host host, boolean lazy, String... namesAndValues) {
    this.ranks = ranks;
    this.lazy = lazy;
    this.settings = settings(lazy, namesAndValues);
    List<Integer> theirs = ranksOf('L');
    List<PeerProcess> loaded = PeerProcess.load(theirs.size());
    for (int i = 0; i < theirs.size(); i++) {
      peers.put(theirs.get(i), loaded.get(i));
    }
    this.server = host == Host.TUTTI ? new TcpStoreServer(0) : null;
    this.file = host == Host.FILE ? newFile() : null;
    try {
      if (file != null) {
        port = 0;
      } else if (server == null) {
        int first = theirs.getFirst();
        PeerArguments arguments = options(PeerArguments.tcpServer(first, size()));
        PeerProcess hosting = peers.get(first);
        hosting.open(host == Host.LEGACY ? arguments.with("--legacy") : arguments);
        port = hosting.awaitPort(LIMIT);
        theirs.removeFirst();
      } else {
        port = server.port();
      }
      for (int rank : theirs) {
        peers
            .get(rank)
            .open(
                options(
                    file == null
                        ? PeerArguments.tcp(rank, size(), port)
                        : PeerArguments.file(rank, size(), file.toString())));
      }
    } catch (Throwable e) {
      close();
      throw e;
    }
  }

  private static Settings settings(boolean lazy, String... namesAndValues) {
    Settings settings =
        Settings.ofEnvironment(Map.of("TUTTI_CLOSE_TIMEOUT", "500ms"))
            .with(BindAddress.INTERFACE, "lo")
            .with(GlooProvider.SPIN, "0.02ms")
            .with(GlooProvider.LAZY_INIT.name(), lazy ? "1" : "0");
    for (int i = 0; i < namesAndValues.length; i += 2) {
      settings = settings.with(namesAndValues[i], namesAndValues[i + 1]);
    }
    return settings;
  }

  private static Path newFile() {
    return Path.of(System.getProperty("java.io.tmpdir"), "tutti-store-" + UUID.randomUUID());
  }

  private PeerArguments options(PeerArguments arguments) {
    return lazy ? arguments.with("--lazy") : arguments;
  }

  private List<Integer> ranksOf(char kind) {
    return IntStream.range(0, size())
        .filter(rank -> ranks.charAt(rank) == kind)
        .boxed()
        .collect(Collectors.toCollection(ArrayList::new));
  }

  int size() {
    return ranks.length();
  }

  private interface Body {
    void run(ProcessGroup group) throws Exception;
  }

  /** Runs a body on the ranks of Tutti; throws the first failure. */
  private void onTutti(Body body) throws Exception {
    List<Callable<@Nullable Void>> calls = new ArrayList<>();
    for (int rank : ranksOf('T')) {
      calls.add(
          () -> {
            try (@Nullable TcpStore store = file == null ? new TcpStore("127.0.0.1", port) : null;
                ProcessGroup group = ProcessGroup.init(options(store, rank))) {
              body.run(group);
              return null;
            }
          });
    }
    try (ExecutorService threads = Executors.newCachedThreadPool()) {
      Exception failure = null;
      for (Future<?> call : threads.invokeAll(calls, limit.toSeconds(), TimeUnit.SECONDS)) {
        try {
          call.get();
        } catch (ExecutionException | CancellationException e) {
          if (failure == null) {
            failure = e;
          } else {
            failure.addSuppressed(e);
          }
        }
      }
      if (failure != null) {
        throw failure;
      }
    }
  }

  private GroupOptions options(@Nullable TcpStore store, int rank) {
    GroupOptions place =
        store == null
            ? GroupOptions.DEFAULT.withInitMethod("file://" + file)
            : GroupOptions.DEFAULT.withStore(new PrefixStore("default_pg", store));
    return place
        .withRank(rank)
        .withSize(size())
        .withProvider(new GlooProvider())
        .withSettings(settings)
        .withTimeout(TIMEOUT);
  }

  /** A function that returns the lines that each rank runs. */
  interface Script {
    List<String> of(int rank);
  }

  /** Runs a script on all ranks and returns the checksums, by rank and line. */
  List<List<String>> run(Script script) throws Exception {
    Map<Integer, List<String>> checksums = new HashMap<>();
    try {
      runOnTutti(script, checksums);
    } catch (Exception | Error e) {
      peers.forEach(
          (rank, peer) -> e.addSuppressed(new Exception("rank " + rank + ": " + peer.log())));
      throw e;
    }
    for (Map.Entry<Integer, PeerProcess> entry : peers.entrySet()) {
      List<String> own = new ArrayList<>();
      for (String line : script.of(entry.getKey())) {
        PeerResult result = entry.getValue().await(LIMIT);
        assertThat(result.ok()).as("%s on rank %d: %s", line, entry.getKey(), result).isTrue();
        own.add(result.crc());
      }
      checksums.put(entry.getKey(), own);
    }
    List<List<String>> all = new ArrayList<>();
    for (int rank = 0; rank < size(); rank++) {
      all.add(checksums.get(rank));
    }
    return all;
  }

  private void runOnTutti(Script script, Map<Integer, List<String>> checksums) throws Exception {
    CountDownLatch joined = new CountDownLatch(ranksOf('T').size());
    Thread starter = Thread.ofVirtual().start(() -> start(script, joined));
    onTutti(
        group -> {
          joined.countDown();
          try (ScriptedRank rank = new ScriptedRank(group)) {
            List<String> own = script.of(group.rank()).stream().map(rank::run).toList();
            synchronized (checksums) {
              checksums.put(group.rank(), own);
            }
            // Closing the peers is a barrier.
            group.barrier();
          }
        });
    starter.join();
  }

  /**
   * Starts the peers' scripts once all ranks have published their addresses: a rank of libtorch
   * that connects lazily to one that has not done so crashes.
   */
  private void start(Script script, CountDownLatch joined) {
    try {
      for (PeerProcess peer : peers.values()) {
        peer.awaitReady(LIMIT);
      }
      if (joined.await(LIMIT.toSeconds(), TimeUnit.SECONDS)) {
        // A long script fills its pipe until the peers make progress, so the scripts are written in
        // parallel.
        peers.forEach(
            (rank, peer) ->
                Thread.ofPlatform()
                    .daemon()
                    .start(() -> peer.send(script.of(rank).toArray(String[]::new))));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** A function that returns the lines that all ranks of a group run. */
  interface Lines {
    List<String> of(int size);
  }

  /**
   * Runs the same lines on all ranks, then in subgroups, each with its own connections and possibly
   * without one of the ranks, and compares each result with the expected one.
   *
   * @param rounds the number of groups, including the group of all ranks
   */
  void expectAll(Lines lines, int rounds) throws Exception {
    limit = ROUND.multipliedBy(rounds);
    List<Step> steps = new ArrayList<>();
    for (int round = 0; round < rounds; round++) {
      addRound(steps, round, lines);
    }
    List<List<String>> checksums =
        run(
            rank -> {
              List<String> script = new ArrayList<>();
              steps.forEach(step -> script.add(step.line() + step.group()));
              if (ranks.charAt(rank) == 'L') {
                script.add("close");
              }
              return script;
            });
    Map<List<Object>, String> known = new HashMap<>();
    for (int rank = 0; rank < size(); rank++) {
      for (int i = 0; i < steps.size(); i++) {
        Step step = steps.get(i);
        assertThat(checksums.get(rank).get(i))
            .as("%s%s on rank %d (%s)", step.line(), step.group(), rank, ranks)
            .isEqualTo(step.expected(rank, known));
      }
    }
  }

  /** A line of the script; results come from the named ranks, in that order. */
  private record Step(String line, String group, List<Integer> members) {
    String expected(int rank, Map<List<Object>, String> known) {
      int position = members.indexOf(rank);
      return position < 0
          ? PeerData.crc(new byte[0])
          : known.computeIfAbsent(
              List.of(line, position, members.size()),
              _ -> PeerData.crc(PeerOracle.expected(line, position, members.size())));
    }
  }

  private void addRound(List<Step> steps, int round, Lines lines) {
    List<Integer> members = members(round);
    Step barrier = new Step("barrier", "", List.of());
    String group = "";
    if (round > 0) {
      String names = String.join(",", members.stream().map(String::valueOf).toList());
      steps.add(new Step("subgroup ranks=" + names + " name=" + round, "", List.of()));
      // Without the barrier a lazy rank of libtorch would connect to one that has not published its
      // address.
      steps.add(barrier);
      group = " group=" + round;
    }
    for (String line : lines.of(members.size())) {
      steps.add(new Step(line, group, members));
    }
    steps.add(barrier);
  }

  /**
   * Returns the ranks of a round: all of them, or all but one, which changes from round to round.
   */
  private List<Integer> members(int round) {
    List<Integer> members = new ArrayList<>(IntStream.range(0, size()).boxed().toList());
    if (size() > 2) {
      members.remove(Integer.valueOf(size() - round % (size() + 1)));
    }
    return members;
  }

  @Override
  public void close() {
    peers.values().forEach(PeerProcess::close);
    if (server != null) {
      server.close();
    }
    if (file != null) {
      // The last rank of libtorch deletes it, if it can.
      boolean _ = file.toFile().delete();
    }
  }
}
