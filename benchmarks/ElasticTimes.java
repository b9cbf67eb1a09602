import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.ExpelledException;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReconfigureOptions;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreServer;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * Kills, stops, continues and adds ranks of an elastic job at random moments of mixed traffic, and
 * measures how long it takes until all that live are in one generation again: {@code ElasticTimes
 * ROUNDS SEED FOLDER [JVM_OPTION...]}. FOLDER is for shared memory.
 */
public class ElasticTimes {
  private static final int SIZE = 4;
  private static final Duration PATIENCE = Duration.ofMinutes(10);
  private static final Duration TIMEOUT = Duration.ofSeconds(10);
  private static final int MOST_MILLIS = 300;
  private static final int CHANGES = 51;

  /** A rank that runs; what it said last of a generation in which it has reduced. */
  private static final class Rank {
    private final Process process;
    private String group = "";
    private long nanos;
    private long started;
    private String wrong = "";

    Rank(Process process) {
      this.process = process;
    }

    void read() {
      try (BufferedReader out = process.inputReader()) {
        for (String line = out.readLine(); line != null; line = out.readLine()) {
          String[] words = line.split(" ");
          synchronized (ElasticTimes.class) {
            switch (words[0]) {
              case "UNDISTURBED" -> System.out.println(line);
              case "STARTED" -> started = Long.parseLong(words[1]);
              case "IN" -> {
                group = words[1] + " of " + words[2];
                nanos = Long.parseLong(words[3]);
              }
              default -> wrong = line;
            }
            ElasticTimes.class.notifyAll();
          }
        }
      } catch (IOException e) {
        // It was killed.
      }
    }
  }

  private final List<Rank> ranks = new ArrayList<>();
  private final Map<String, List<Double>> times = new TreeMap<>();
  private final Random random;
  private final int port;
  private final List<String> jvmOptions;
  private final Path folder;

  private ElasticTimes(long seed, int port, Path folder, List<String> jvmOptions) {
    this.random = new Random(seed);
    this.port = port;
    this.folder = folder;
    this.jvmOptions = jvmOptions;
  }

  public static void main(String[] args) throws Exception {
    if (System.getenv("MASTER_PORT") != null) {
      member();
      return;
    }
    int rounds = Integer.parseInt(args[0]);
    try (TcpStoreServer server = new TcpStoreServer(0)) {
      List<String> options = List.of(args).subList(3, args.length);
      ElasticTimes all =
          new ElasticTimes(Long.parseLong(args[1]), server.port(), Path.of(args[2]), options);
      try {
        all.run(rounds);
      } finally {
        all.ranks.forEach(rank -> rank.process.destroyForcibly());
      }
    }
  }

  // The process that starts the others

  private void run(int rounds) throws Exception {
    for (int rank = 0; rank < SIZE; rank++) {
      start(rank);
    }
    awaitAll("");
    String before = leftovers();
    for (int round = 0; round < rounds; round++) {
      TimeUnit.MILLISECONDS.sleep(random.nextInt(MOST_MILLIS));
      if (random.nextInt(4) > 0) {
        kill();
      } else {
        stop();
      }
    }
    times.forEach(
        (what, all) -> {
          Collections.sort(all);
          System.out.printf(
              "%-46s %4d times, median %8.1f ms, worst %8.1f ms%n",
              what, all.size(), all.get(all.size() / 2), all.getLast());
        });
    System.out.println("descriptors/threads of each rank, files, keys: first " + before);
    System.out.println("descriptors/threads of each rank, files, keys:  last " + leftovers());
  }

  private void kill() throws Exception {
    String old = ranks.getFirst().group;
    Rank killed = ranks.remove(random.nextInt(ranks.size()));
    long now = System.nanoTime();
    killed.process.toHandle().destroyForcibly();
    note("kill -9 to the first all-reduce of those left", awaitAll(old) - now);
    String alone = ranks.getFirst().group;
    Rank joiner = start(-1);
    long in = awaitAll(alone);
    note("main of a replacement to its first all-reduce", joiner.nanos - joiner.started);
    note("main of a replacement to that of all", in - joiner.started);
  }

  private void stop() throws Exception {
    Rank stopped = ranks.get(random.nextInt(ranks.size()));
    String old = stopped.group;
    signal("STOP", stopped);
    if (random.nextBoolean()) {
      ranks.remove(stopped);
      long now = System.nanoTime();
      note("stop to the first all-reduce of the others", awaitAll(old) - now);
      ranks.add(stopped);
      old = ranks.getFirst().group;
      now = System.nanoTime();
      signal("CONT", stopped);
      note("continue to an all-reduce with the others", awaitAll(old) - now);
    } else {
      TimeUnit.MILLISECONDS.sleep(random.nextInt(MOST_MILLIS));
      signal("CONT", stopped);
    }
  }

  private static void signal(String name, Rank rank) throws Exception {
    new ProcessBuilder("kill", "-" + name, Long.toString(rank.process.pid())).start().waitFor();
  }

  private Rank start(int number) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElseThrow());
    command.addAll(jvmOptions);
    command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "-cp"));
    command.addAll(List.of(System.getProperty("java.class.path"), "ElasticTimes"));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.redirectError(ProcessBuilder.Redirect.appendTo(folder.resolve("errors").toFile()));
    Map<String, String> environment = builder.environment();
    if (number >= 0) {
      environment.put("RANK", Integer.toString(number));
      environment.put("WORLD_SIZE", Integer.toString(SIZE));
    }
    environment.put("MASTER_ADDR", "127.0.0.1");
    environment.put("MASTER_PORT", Integer.toString(port));
    environment.put("TORCHELASTIC_USE_AGENT_STORE", "True");
    environment.put("TUTTI_BACKEND", "gloo");
    environment.put("TUTTI_GLOO_SHARED_DIR", folder.toString());
    Rank rank = new Rank(builder.start());
    Thread.ofPlatform().daemon().start(rank::read);
    ranks.add(rank);
    return rank;
  }

  /**
   * Waits until all are in one generation after another one; returns when the last reduced there.
   */
  private long awaitAll(String old) throws InterruptedException {
    synchronized (ElasticTimes.class) {
      while (!areTogether(old)) {
        for (Rank rank : ranks) {
          if (!rank.wrong.isEmpty() || !rank.process.isAlive()) {
            throw new IllegalStateException("a rank ended or is wrong: " + rank.wrong);
          }
        }
        ElasticTimes.class.wait(1000);
      }
      return ranks.stream().mapToLong(rank -> rank.nanos).max().orElseThrow();
    }
  }

  private boolean areTogether(String old) {
    String group = ranks.getFirst().group;
    return !group.equals(old)
        && group.endsWith(" of " + ranks.size())
        && ranks.stream().allMatch(rank -> rank.group.equals(group));
  }

  private void note(String what, long nanos) {
    times.computeIfAbsent(what, _ -> new ArrayList<>()).add(nanos / 1e6);
    System.out.printf("%s: %.1f ms%n", what, nanos / 1e6);
  }

  private String leftovers() throws IOException {
    StringBuilder text = new StringBuilder();
    for (Rank rank : ranks) {
      Path process = Path.of("/proc/" + rank.process.pid());
      text.append(count(process.resolve("fd"))).append('/').append(count(process.resolve("task")));
      text.append(' ');
    }
    try (TcpStore store = new TcpStore("127.0.0.1", port)) {
      return text.append(count(folder)).append(" files ").append(store.keyCount()) + " keys";
    }
  }

  private static long count(Path path) throws IOException {
    try (Stream<Path> files = Files.list(path)) {
      return files.count();
    }
  }

  // A rank

  private static void member() {
    System.out.println("STARTED " + System.nanoTime());
    GroupOptions options = GroupOptions.DEFAULT.withTimeout(PATIENCE);
    ProcessGroup group =
        System.getenv("RANK") == null ? ProcessGroup.join(options) : ProcessGroup.init(options);
    if (System.getenv("RANK") != null) {
      group = measureChanges(group);
    }
    while (true) {
      try {
        work(group);
      } catch (CollectiveException e) {
        System.err.println(e.getMessage());
      }
      try {
        group = group.reconfigure(ReconfigureOptions.DEFAULT.withTimeout(TIMEOUT));
      } catch (ExpelledException e) {
        group.close();
        group = ProcessGroup.join(options);
      }
    }
  }

  /** Measures changes after which all members are still there, and how long a set-up takes. */
  private static ProcessGroup measureChanges(ProcessGroup first) {
    ProcessGroup group = first;
    double[] changes = new double[CHANGES];
    double[] setUps = new double[CHANGES];
    for (int i = 0; i < CHANGES; i++) {
      group.barrier();
      long now = System.nanoTime();
      group = group.reconfigure(ReconfigureOptions.DEFAULT.withTimeout(TIMEOUT));
      group.barrier();
      changes[i] = (System.nanoTime() - now) / 1e6;
      now = System.nanoTime();
      try (ProcessGroup same = group.split(0, group.rank()).orElseThrow()) {
        same.barrier();
        setUps[i] = (System.nanoTime() - now) / 1e6;
      }
    }
    Arrays.sort(changes);
    Arrays.sort(setUps);
    if (group.rank() == 0) {
      System.out.printf(
          "UNDISTURBED change: median %.1f ms; set-up of another group of the same ranks: median"
              + " %.1f ms%n",
          changes[CHANGES / 2], setUps[CHANGES / 2]);
    }
    return group;
  }

  /** Reduces, sends and gathers until somebody has come to join. */
  private static void work(ProcessGroup group) {
    group.setTimeout(TIMEOUT);
    int size = group.size();
    int rank = group.rank();
    Tensor sum = Tensor.of(0f, 0f);
    boolean isTold = false;
    for (int step = 0; ; step++) {
      sum.setFloat(0, rank + 1);
      sum.setFloat(1, group.newcomers() > 0 ? 1 : 0);
      group.allReduce(sum, ReduceOp.SUM);
      require(sum.getFloat(0) == size * (size + 1) / 2f, "a sum of " + sum.getFloat(0));
      if (!isTold) {
        System.out.println("IN " + group.name() + " " + size + " " + System.nanoTime());
        isTold = true;
      }
      if (sum.getFloat(1) > 0) {
        return;
      }
      if (size > 1) {
        exchange(group, step);
      }
    }
  }

  private static void exchange(ProcessGroup group, int step) {
    int size = group.size();
    int rank = group.rank();
    float[] big = new float[1 << (step % 18)];
    Arrays.fill(big, rank);
    Tensor received = Tensor.of(-1L);
    var receive = group.recv(received, (rank + size - 1) % size, 0, CallOptions.ASYNC);
    group.send(Tensor.of((long) step), (rank + 1) % size);
    receive.await();
    require(received.getLong(0) == step, "a message of step " + received.getLong(0));
    Tensor tensor = Tensor.of(big);
    group.broadcast(tensor, step % size);
    require(tensor.getFloat(big.length - 1) == step % size, "a broadcast");
  }

  private static void require(boolean holds, String what) {
    if (!holds) {
      System.out.println("WRONG " + what);
      throw new IllegalStateException(what);
    }
  }
}
