package dev.tutti.gloo.transport;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.gloo.GlooProvider;
import dev.tutti.store.HashStore;
import dev.tutti.store.tcp.TcpStoreServer;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

/**
 * Lets groups fail in all ways, one after the other, and checks after each failure whether anything
 * is left: a file or a mapping of shared memory, a socket or another open file, a thread. It runs
 * in a process of {@link FaultRunsTest}, and prints a line for each run and {@code OK} at the end.
 */
final class FaultRunsMain {
  static final int SIZE = 3;
  private static final Duration SHORT = Duration.ofMillis(100);

  /** Longer than the JDK keeps the thread that waited for a process, which is a minute. */
  private static final Duration GRACE = Duration.ofMinutes(3);

  private static final Duration TIMEOUT = Duration.ofMinutes(2);

  /** How long a rank may take; longer than an operation, whose failure says more. */
  private static final int LIMIT_SECONDS = 240;

  /** The medium through which the ranks exchange data. */
  private enum Way {
    MEMORY,
    SOCKETS,
    TWO_LEVELS,
    NO_ROOM
  }

  interface Body {
    void run(ProcessGroup group) throws Exception;
  }

  private interface Fault {
    void run(FaultRunsMain world, Way way) throws Exception;
  }

  private static final Map<String, Fault> FAULTS = faults();

  private final Path directory;

  /** Where the ranks of a world meet, so that one that fails ends no operation of before. */
  private final CyclicBarrier through = new CyclicBarrier(SIZE);

  private FaultRunsMain(Path directory) {
    this.directory = directory;
  }

  /**
   * Runs the number of faults given by the first argument, in the directory given by the second.
   */
  public static void main(String[] args) throws Exception {
    int runs = Integer.parseInt(args[0]);
    FaultRunsMain world = new FaultRunsMain(Path.of(args[1]));
    List<String> names = FAULTS.keySet().stream().limit(runs).toList();
    // The first run of each kind loads classes, which keeps files open.
    for (String name : names) {
      world.run(name, Way.MEMORY);
    }
    LockSupport.parkNanos(500_000_000);
    Map<String, Integer> before = world.everything();
    for (int i = 0; i < runs; i++) {
      String name = names.get(i % names.size());
      Way way = Way.values()[(i + i / names.size()) % Way.values().length];
      long start = System.nanoTime();
      world.run(name, way);
      long millis = Duration.ofNanos(System.nanoTime() - start).toMillis();
      world.assertNothingBeside(before, name + " " + way);
      System.out.println("RUN " + i + " " + name + " " + way + " " + millis + " ms");
    }
    System.out.println("OK");
  }

  private void run(String name, Way way) throws Exception {
    FAULTS.get(name).run(this, way);
  }

  private static Map<String, Fault> faults() {
    Map<String, Fault> faults = new TreeMap<>();
    faults.put("none", (world, way) -> world.inAll(way, FaultRunsMain::reduce));
    faults.put("other type", (world, way) -> world.inAll(way, FaultRunsMain::reduceOtherType));
    faults.put("other size", (world, way) -> world.inAll(way, FaultRunsMain::reduceOtherSize));
    faults.put("late", (world, way) -> world.inAll(way, FaultRunsMain::comeLate));
    faults.put("abort", (world, way) -> world.inAll(way, FaultRunsMain::abort));
    faults.put("early close", (world, way) -> world.inAll(way, FaultRunsMain::closeEarly));
    faults.put("pending messages", (world, way) -> world.inAll(way, FaultRunsMain::leaveMessages));
    faults.put("symmetric", (world, way) -> world.inAll(way, world::leaveSymmetric));
    faults.put("missing", FaultRunsMain::missing);
    faults.put("garbage", (world, way) -> world.garbage(false));
    faults.put("truncated", (world, way) -> world.garbage(true));
    faults.put("killed", FaultRunsMain::killed);
    return faults;
  }

  private Settings settings(Way way, int rank) {
    return Settings.ofEnvironment(values(way, rank));
  }

  private Map<String, String> values(Way way, int rank) {
    Path host = directory.resolve(way == Way.TWO_LEVELS && rank == 0 ? "one" : "other");
    try {
      Files.createDirectories(host);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
    Map<String, String> values = new HashMap<>();
    values.put("GLOO_SOCKET_IFNAME", "lo");
    values.put("TUTTI_CLOSE_TIMEOUT", "200ms");
    values.put("TUTTI_GLOO_SHARED_DIR", host.toString());
    values.put(
        "TUTTI_GLOO_SHARED_BYTES",
        switch (way) {
          case MEMORY, TWO_LEVELS -> "1M";
          case SOCKETS -> "0";
          case NO_ROOM -> "64K";
        });
    return values;
  }

  private void inAll(Way way, Body body) throws Exception {
    HashStore store = new HashStore();
    List<Callable<Void>> ranks = new ArrayList<>();
    for (int r = 0; r < SIZE; r++) {
      int rank = r;
      ranks.add(
          () -> {
            GroupOptions options = options(store, way, rank);
            try (ProcessGroup group = ProcessGroup.init(options)) {
              reduce(group);
              // A failure would also end the operation of a rank that has not left it yet.
              through.await(LIMIT_SECONDS, TimeUnit.SECONDS);
              body.run(group);
            }
            return null;
          });
    }
    inThreads(ranks);
  }

  private GroupOptions options(HashStore store, Way way, int rank) {
    return GroupOptions.DEFAULT
        .withStore(store)
        .withRank(rank)
        .withSize(SIZE)
        .withProvider(new GlooProvider())
        .withSettings(settings(way, rank))
        .withTimeout(TIMEOUT);
  }

  private static void inThreads(List<Callable<Void>> calls) throws Exception {
    List<FutureTask<Void>> tasks = new ArrayList<>();
    List<Thread> threads = new ArrayList<>();
    for (Callable<Void> call : calls) {
      FutureTask<Void> task = new FutureTask<>(call);
      tasks.add(task);
      threads.add(Thread.ofPlatform().daemon().start(task));
    }
    for (int i = 0; i < tasks.size(); i++) {
      try {
        tasks.get(i).get(LIMIT_SECONDS, TimeUnit.SECONDS);
      } catch (ExecutionException e) {
        throw new AssertionError("rank " + i, e.getCause());
      }
      threads.get(i).join();
    }
  }

  static void reduce(ProcessGroup group) {
    for (int count : new int[] {1, 3000, 200_000}) {
      Tensor tensor = Tensor.allocate(DType.FLOAT32, count);
      tensor.fill(group.rank() + 1);
      group.allReduce(tensor);
      if (tensor.getDouble(count - 1) != SIZE * (SIZE + 1) / 2) {
        throw new AssertionError("sum " + tensor.getDouble(count - 1));
      }
    }
  }

  static void expectFailure(Runnable call) {
    try {
      call.run();
    } catch (TuttiException e) {
      return;
    }
    throw new AssertionError("no failure");
  }

  static void reduceOtherType(ProcessGroup group) {
    DType dtype = group.rank() == 1 ? DType.INT64 : DType.FLOAT32;
    expectFailure(() -> reduceOften(group, dtype, 5000));
  }

  static void reduceOtherSize(ProcessGroup group) {
    expectFailure(() -> reduceOften(group, DType.FLOAT32, group.rank() == 2 ? 70_000 : 4));
  }

  private static void reduceOften(ProcessGroup group, DType dtype, int count) {
    for (int i = 0; i < 3; i++) {
      group.allReduce(Tensor.allocate(dtype, count));
    }
  }

  private static void comeLate(ProcessGroup group) {
    if (group.rank() == 1) {
      await(() -> group.failure().isPresent());
    }
    expectFailure(
        () ->
            group
                .allReduce(
                    Tensor.allocate(DType.FLOAT32, 5000), ReduceOp.SUM, CallOptions.timeout(SHORT))
                .await());
  }

  static void abort(ProcessGroup group) {
    if (group.rank() == 2) {
      group.abort("enough");
    }
    expectFailure(() -> reduce(group));
  }

  static void closeEarly(ProcessGroup group) {
    if (group.rank() != 0) {
      expectFailure(() -> reduceOften(group, DType.FLOAT32, 100_000));
    }
  }

  static void leaveMessages(ProcessGroup group) {
    int next = (group.rank() + 1) % SIZE;
    group.recv(Tensor.allocate(DType.FLOAT32, 5000), next, 0, CallOptions.ASYNC);
    group.send(Tensor.allocate(DType.FLOAT32, 300_000), next, 7, CallOptions.ASYNC);
  }

  private void leaveSymmetric(ProcessGroup group) throws Exception {
    try {
      group.allocateSymmetric(100_000);
    } catch (UnsupportedOperationException e) {
      // The ranks share no memory, or only some of them do.
    }
    through.await(LIMIT_SECONDS, TimeUnit.SECONDS);
    if (group.rank() == 1) {
      group.abort("enough");
    }
    expectFailure(() -> reduce(group));
  }

  private static void missing(FaultRunsMain world, Way way) throws Exception {
    HashStore store = new HashStore();
    List<Callable<Void>> ranks = new ArrayList<>();
    for (int r = 0; r < SIZE - 1; r++) {
      int rank = r;
      ranks.add(
          () -> {
            try (ProcessGroup group =
                ProcessGroup.init(world.options(store, way, rank).withTimeout(SHORT))) {
              throw new AssertionError("a group without a rank: " + group);
            } catch (RendezvousException e) {
              return null;
            }
          });
    }
    inThreads(ranks);
  }

  private void garbage(boolean truncated) throws Exception {
    try (RawPeer peer = new RawPeer(false);
        ProcessGroup group = GarbagePeerTest.group(peer, TIMEOUT)) {
      peer.send(new byte[truncated ? 30 : 300]);
      if (truncated) {
        peer.die();
      }
      expectFailure(() -> group.allReduce(Tensor.allocate(DType.FLOAT32, 1000)));
    }
  }

  private static void killed(FaultRunsMain world, Way way) throws Exception {
    try (TcpStoreServer server = new TcpStoreServer(0)) {
      int victim = SIZE - 1;
      Process process = world.start(world.environment(way, victim, server.port()));
      try {
        List<Callable<Void>> ranks = new ArrayList<>();
        for (int r = 0; r < victim; r++) {
          int rank = r;
          ranks.add(
              () -> {
                Settings settings =
                    Settings.ofEnvironment(world.environment(way, rank, server.port()));
                try (ProcessGroup group =
                    ProcessGroup.init(
                        GroupOptions.DEFAULT
                            .withProvider(new GlooProvider())
                            .withSettings(settings))) {
                  expectFailure(() -> reduceUntilKilled(group, process));
                }
                return null;
              });
        }
        inThreads(ranks);
      } finally {
        process.destroyForcibly();
        process.waitFor(60, TimeUnit.SECONDS);
      }
    }
  }

  private static void reduceUntilKilled(ProcessGroup group, Process process) {
    for (int i = 0; ; i++) {
      if (i == 20 && group.rank() == 0) {
        process.destroyForcibly();
      }
      group.allReduce(Tensor.allocate(DType.FLOAT32, 1000));
    }
  }

  private Map<String, String> environment(Way way, int rank, int port) {
    Map<String, String> values = values(way, rank);
    values.put("RANK", Integer.toString(rank));
    values.put("WORLD_SIZE", Integer.toString(SIZE));
    values.put("MASTER_ADDR", "127.0.0.1");
    values.put("MASTER_PORT", Integer.toString(port));
    values.put("TORCHELASTIC_USE_AGENT_STORE", "True");
    values.put("TUTTI_BACKEND", "gloo");
    values.put("TUTTI_TIMEOUT", TIMEOUT.toSeconds() + "s");
    return values;
  }

  private Process start(Map<String, String> environment) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElseThrow());
    command.addAll(
        List.of("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:+UseSerialGC"));
    command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "-cp"));
    command.add(ManagementFactory.getRuntimeMXBean().getClassPath());
    command.addAll(List.of("dev.tutti.gloo.SurvivorMain", "1000", "ordinary"));
    ProcessBuilder builder =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD);
    builder.environment().putAll(environment);
    return builder.start();
  }

  private interface Condition {
    boolean holds();
  }

  private static void await(Condition condition) {
    long deadline = System.nanoTime() + GRACE.toNanos();
    while (!condition.holds()) {
      if (System.nanoTime() - deadline > 0) {
        throw new AssertionError("did not come in " + GRACE);
      }
      LockSupport.parkNanos(1_000_000);
    }
  }

  private void assertNothingBeside(Map<String, Integer> before, String run) throws IOException {
    long deadline = System.nanoTime() + GRACE.toNanos();
    Map<String, Integer> left = beside(before);
    while (!left.isEmpty()) {
      if (System.nanoTime() - deadline > 0) {
        throw new AssertionError("left by " + run + ": " + left);
      }
      LockSupport.parkNanos(5_000_000);
      left = beside(before);
    }
  }

  private Map<String, Integer> beside(Map<String, Integer> before) throws IOException {
    Map<String, Integer> left = new TreeMap<>();
    everything()
        .forEach(
            (what, count) -> {
              int more = count - before.getOrDefault(what, 0);
              if (more > 0) {
                left.put(what, more);
              }
            });
    return left;
  }

  /** Counts what this process holds: threads, open files, mappings and files of shared memory. */
  private Map<String, Integer> everything() throws IOException {
    Map<String, Integer> found = new TreeMap<>();
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      found.merge("thread " + thread.getName().replaceAll("[0-9]+", "N"), 1, Integer::sum);
    }
    try (DirectoryStream<Path> links = Files.newDirectoryStream(Path.of("/proc/self/fd"))) {
      for (Path link : links) {
        try {
          String target = Files.readSymbolicLink(link).toString();
          found.merge("open " + target.replaceAll("[0-9]+", "N"), 1, Integer::sum);
        } catch (NoSuchFileException e) {
          // Closed since it was listed: the descriptor that lists the folder is such a file itself.
        }
      }
    }
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
      lines
          .filter(line -> line.contains("/tutti-"))
          .forEach(line -> found.merge("mapping of shared memory", 1, Integer::sum));
    }
    try (Stream<Path> files = Files.walk(directory)) {
      files
          .filter(Files::isRegularFile)
          .forEach(file -> found.merge("file " + file, 1, Integer::sum));
    }
    return found;
  }
}
