package dev.tutti.cli.strangers;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.Tensor;
import dev.tutti.aeron.AeronStore;
import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.AeronStoreServer;
import dev.tutti.aeron.cluster.AeronClusterServer;
import dev.tutti.aeron.cluster.AeronClusterStore;
import dev.tutti.store.JobToken;
import dev.tutti.store.PrefixStore;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreOptions;
import dev.tutti.store.tcp.TcpStoreServer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.BooleanSupplier;

/**
 * The main class of a process with servers that strangers reach, and a job that uses them and
 * checks its values. It reads a line for each round and answers it: {@code round} runs checks,
 * {@code join} lets the last rank on gloo join.
 */
final class StrangersJob {
  private static final String TOKEN = "0123456789abcdef0123456789abcdef";
  private static final Duration TIMEOUT = Duration.ofMinutes(4);
  private static final Duration LEASE = Duration.ofSeconds(30);
  private static final int CHECKS = 20;
  private static final int RANKS = 3;

  private final BufferedReader in =
      new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
  private final List<AutoCloseable> open = new ArrayList<>();
  private final List<BooleanSupplier> alive = new ArrayList<>();
  private final ExecutorService pool = Executors.newCachedThreadPool();
  private long checked;
  private long wrong;

  private StrangersJob() {}

  /**
   * Runs one job.
   *
   * @param args the kind of the target, a folder, and the members of a cluster
   */
  public static void main(String[] args) throws Exception {
    StrangersJob job = new StrangersJob();
    try {
      switch (Target.Kind.valueOf(args[0])) {
        case TCP -> job.serveStores(job.tcp(JobToken.of(TOKEN)), job.tcp(JobToken.NONE));
        case GLOO -> job.serveRanks();
        case AERON ->
            job.serveStores(
                job.aeron(Path.of(args[1], "with"), JobToken.of(TOKEN)),
                job.aeron(Path.of(args[1], "without"), JobToken.NONE));
        case CLUSTER -> job.serveStores(job.cluster(Path.of(args[1]), args[2]));
      }
    } finally {
      for (AutoCloseable each : job.open.reversed()) {
        each.close();
      }
    }
    job.pool.shutdown();
  }

  private <T extends AutoCloseable> T opened(T resource) {
    open.add(resource);
    return resource;
  }

  private Store tcp(JobToken token) {
    TcpStoreServer server = opened(new TcpStoreServer(InetAddress.getLoopbackAddress(), 0, token));
    alive.add(server::isRunning);
    return opened(
        new TcpStore(
            TcpStoreOptions.of("127.0.0.1", server.port()).withToken(token).withTimeout(TIMEOUT)));
  }

  private Store aeron(Path folder, JobToken token) throws Exception {
    AeronStoreOptions options =
        AeronStoreOptions.of("127.0.0.1", 0)
            .withDirectory(Files.createDirectories(folder))
            .withTransport(AeronStoreOptions.Transport.UDP)
            .withToken(token)
            .withLease(LEASE)
            .withTimeout(TIMEOUT);
    AeronStoreServer server = opened(new AeronStoreServer(options));
    alive.add(server::isRunning);
    return opened(new AeronStore(options.withPort(server.port())));
  }

  private Store cluster(Path folder, String members) {
    AeronStoreOptions options =
        AeronStoreOptions.of("localhost", 0)
            .withDirectory(folder)
            .withToken(JobToken.of(TOKEN))
            .withLease(LEASE)
            .withTimeout(TIMEOUT);
    for (int i = 0; i < members.split(",", -1).length; i++) {
      AeronClusterServer server =
          opened(new AeronClusterServer(members, i, folder.resolve("data" + i), options));
      alive.add(server::isRunning);
    }
    return opened(new AeronClusterStore(members, options));
  }

  private void serveStores(Store... stores) throws Exception {
    say("ready");
    for (long round = 1; "round".equals(in.readLine()); round++) {
      List<Future<Integer>> calls = new ArrayList<>();
      for (Store store : stores) {
        long now = round;
        calls.add(pool.submit(() -> checkStore(store, now)));
      }
      for (Future<Integer> call : calls) {
        wrong += call.get();
        checked += 4 * CHECKS;
      }
      report();
    }
  }

  private static int checkStore(Store store, long round) {
    int bad = 0;
    for (int i = 0; i < CHECKS; i++) {
      byte[] value = new byte[1 + (int) ((round * 31 + i * 977L) % 5000)];
      Arrays.fill(value, (byte) (round + i));
      store.set("job/value", value);
      bad += Arrays.equals(store.get("job/value"), value) ? 0 : 1;
      bad += store.add("job/count", 3) == 3 * ((round - 1) * CHECKS + i + 1) ? 0 : 1;
      store.queuePush("job/queue", value);
      bad += Arrays.equals(store.queuePop("job/queue", TIMEOUT), value) ? 0 : 1;
      bad += store.queueLength("job/queue") == 0 ? 0 : 1;
    }
    return bad;
  }

  private void serveRanks() throws Exception {
    JobToken token = JobToken.of(TOKEN);
    TcpStoreServer server = opened(new TcpStoreServer(InetAddress.getLoopbackAddress(), 0, token));
    alive.add(server::isRunning);
    TcpStoreOptions meeting = TcpStoreOptions.of("127.0.0.1", server.port()).withToken(token);
    say("ready");
    for (long round = 1; "round".equals(in.readLine()); round++) {
      String prefix = "round" + round;
      List<Future<Integer>> ranks = new ArrayList<>();
      for (int rank = 0; rank < RANKS; rank++) {
        int own = rank;
        if (rank == RANKS - 1) {
          // Until the last rank connects, the others have to listen.
          String line = in.readLine();
          if (!"join".equals(line)) {
            throw new IllegalStateException("expected join, not " + line);
          }
        }
        ranks.add(pool.submit(() -> checkRank(meeting, prefix, own)));
      }
      for (Future<Integer> rank : ranks) {
        wrong += rank.get();
        checked += CHECKS;
      }
      server.forgetAllBut("none");
      report();
    }
  }

  private static int checkRank(TcpStoreOptions meeting, String prefix, int rank) {
    int bad = 0;
    try (TcpStore store = new TcpStore(meeting);
        ProcessGroup group =
            ProcessGroup.init(
                GroupOptions.DEFAULT
                    .withStore(new PrefixStore(prefix, store))
                    .withRank(rank)
                    .withSize(RANKS)
                    .withBackend("gloo")
                    .withTimeout(TIMEOUT)
                    .withSettings(
                        Settings.ofEnvironment(
                            Map.of(
                                "GLOO_SOCKET_IFNAME", "lo",
                                "TUTTI_TOKEN", TOKEN,
                                "TUTTI_GLOO_SHARED_BYTES", "0"))))) {
      for (int i = 0; i < CHECKS; i++) {
        Tensor sum = Tensor.of(rank + i, 1f, 10f * rank);
        group.allReduce(sum);
        float[] expected = {3f + 3 * i, 3f, 30f};
        bad += Arrays.equals(sum.toFloatArray(), expected) ? 0 : 1;
      }
    }
    return bad;
  }

  private void report() {
    boolean up = alive.stream().allMatch(BooleanSupplier::getAsBoolean);
    say("%d %d %s".formatted(checked, wrong, up));
  }

  private static void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
}
