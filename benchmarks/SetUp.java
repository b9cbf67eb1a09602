import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.store.HashStore;
import dev.tutti.store.tcp.TcpStoreServer;
import java.io.BufferedReader;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Times how long processes on this host, all already up, take to form a group. Without RANK in the
 * environment it starts them with its own JVM options: {@code SetUp RANKS [JVM_OPTION...]}.
 */
public class SetUp {
  private record Rank(Process process, BufferedReader out) {}

  public static void main(String[] args) throws Exception {
    if (System.getenv("RANK") == null) {
      int size = Integer.parseInt(args[0]);
      try (TcpStoreServer server = new TcpStoreServer(0)) {
        start(size, server.port(), List.of(args).subList(1, args.length));
      }
    } else {
      join();
    }
  }

  private static void start(int size, int port, List<String> jvmOptions) throws Exception {
    List<Rank> ranks = new ArrayList<>();
    try {
      long start = System.nanoTime();
      for (int number = 0; number < size; number++) {
        ranks.add(start(number, size, port, jvmOptions));
      }
      await(ranks, "UP");
      long up = System.nanoTime();
      next(ranks);
      await(ranks, "MET");
      long met = System.nanoTime();
      await(ranks, "REDUCED");
      long reduced = System.nanoTime();
      System.out.printf(
          "{\"ranks\": %d, \"start_ms\": %d, \"set_up_ms\": %d, \"first_operations_ms\": %d}%n",
          size, (up - start) / 1_000_000, (met - up) / 1_000_000, (reduced - met) / 1_000_000);
      next(ranks);
      for (Rank rank : ranks) {
        rank.process().waitFor();
      }
    } finally {
      ranks.forEach(rank -> rank.process().destroyForcibly());
    }
  }

  private static Rank start(int number, int size, int port, List<String> jvmOptions)
      throws IOException {
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElseThrow());
    command.addAll(List.of("-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"));
    command.add("--enable-native-access=ALL-UNNAMED");
    command.addAll(jvmOptions);
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), "SetUp"));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.redirectError(ProcessBuilder.Redirect.DISCARD);
    builder
        .environment()
        .putAll(
            Map.of(
                "RANK",
                Integer.toString(number),
                "WORLD_SIZE",
                Integer.toString(size),
                "MASTER_ADDR",
                "127.0.0.1",
                "MASTER_PORT",
                Integer.toString(port),
                "TORCHELASTIC_USE_AGENT_STORE",
                "True",
                "TUTTI_BACKEND",
                "gloo"));
    Process process = builder.start();
    return new Rank(process, process.inputReader());
  }

  private static void await(List<Rank> ranks, String word) throws IOException {
    for (Rank rank : ranks) {
      String line = rank.out().readLine();
      if (!word.equals(line)) {
        throw new IOException("a rank printed " + line + " instead of " + word);
      }
    }
  }

  private static void next(List<Rank> ranks) throws IOException {
    for (Rank rank : ranks) {
      rank.process().getOutputStream().write('\n');
      rank.process().getOutputStream().flush();
    }
  }

  private static void join() throws Exception {
    GroupOptions alone = GroupOptions.DEFAULT.withStore(new HashStore()).withRank(0).withSize(1);
    try (ProcessGroup group = ProcessGroup.init(alone)) {
      group.barrier();
    }
    System.out.println("UP");
    System.in.read();
    try (ProcessGroup group = ProcessGroup.init(GroupOptions.DEFAULT)) {
      System.out.println("MET");
      Tensor sum = Tensor.of(1f);
      group.allReduce(sum, ReduceOp.SUM);
      group.barrier();
      System.out.println(sum.getDouble(0) == group.size() ? "REDUCED" : "WRONG");
      System.in.read();
    }
  }
}
