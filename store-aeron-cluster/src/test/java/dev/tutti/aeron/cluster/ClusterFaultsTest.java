package dev.tutti.aeron.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.Store;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.StoreTokenException;
import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.StoreChild;
import dev.tutti.aeron.cluster.member.ClusterMembers;
import dev.tutti.aeron.session.WaitingCalls;
import dev.tutti.shared.Until;
import dev.tutti.store.JobToken;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests what a cluster keeps, which clients it refuses, and what it reports about wrong setups. */
class ClusterFaultsTest {
  private static final Duration LONG = Duration.ofSeconds(100);
  private static final Duration VERY_LONG = Duration.ofMinutes(10);
  private static final Duration SHORT = Duration.ofSeconds(3);
  private static final JobToken TOKEN = JobToken.of("0123456789abcdef");

  @TempDir private Path directory;

  @Tag("full")
  @Test
  @Timeout(value = 15, unit = TimeUnit.MINUTES)
  void aClusterGoesOnFromSnapshotAndLog() throws Exception {
    try (TestCluster cluster = new TestCluster(directory, JobToken.NONE);
        AeronClusterStore store = cluster.connect()) {
      byte[] large = new byte[100_000];
      new Random(1).nextBytes(large);
      store.set("large", large);
      store.add("count", 41);
      store.queuePush("queue", new byte[] {1});
      store.queuePush("queue", new byte[] {2});
      store.leaveWill("will/", new byte[] {3});
      CompletableFuture<byte[]> first = asker(() -> store.queuePop("pops", VERY_LONG));
      CompletableFuture<byte[]> waiter = asker(() -> store.get("later", VERY_LONG));
      Until.holds(() -> WaitingCalls.of(store) == 2);
      Until.holds(() -> cluster.leader().filter(AeronClusterServer::takeSnapshot).isPresent());
      Until.holds(() -> cluster.servers().stream().allMatch(server -> server.snapshots() == 1));
      store.add("count", 1);
      assertThat(store.queuePop("queue", Duration.ZERO)).containsExactly(1);

      // A restarted member takes over the session even if it led: the others elected a leader
      // meanwhile.
      int leader = store.leader();
      cluster.restart(leader);
      Until.holds(() -> store.leader() != leader);
      assertThat(store.add("count", 1)).isEqualTo(43);
      store.queuePush("pops", new byte[] {1});
      assertThat(first.get(100, TimeUnit.SECONDS)).containsExactly(1);
      store.set("later", new byte[] {9});
      assertThat(waiter.get(100, TimeUnit.SECONDS)).containsExactly(9);
      assertThat(store.check(List.of("will/1"))).isFalse();

      // After all members restart, a client that was connected must come back; its will is
      // executed.
      cluster.restartAll();
      CompletableFuture<byte[]> never = asker(() -> store.get("never", VERY_LONG));
      // With another lease the client gets a session of its own.
      AeronStoreOptions other = cluster.options().withLease(TestCluster.LEASE.plusSeconds(1));
      try (Store again = new AeronClusterStore(cluster.members, other)) {
        assertThat(again.add("count", 0)).isEqualTo(43);
        assertThat(again.get("large")).isEqualTo(large);
        assertThat(again.queuePop("queue", Duration.ZERO)).containsExactly(2);
        assertThat(again.queueLength("queue")).isZero();
        assertThat(again.get("will/1")).containsExactly(3);
        assertThatThrownBy(() -> never.get(100, TimeUnit.SECONDS))
            .hasCauseInstanceOf(StoreConnectionException.class)
            // The latter if the members take longer to start than a client waits for one.
            .hasMessageMatching(
                "(?s).*(it does not know the session of this process, as after a restart of members"
                    + "|is gone: no member answered for).*");
      }
    }
  }

  @Test
  @Timeout(value = 20, unit = TimeUnit.MINUTES)
  @Tag("full")
  void theLogIsCutBehindItsSnapshots() throws Exception {
    try (TestCluster cluster = new TestCluster(directory, JobToken.NONE, 1 << 20);
        AeronClusterStore store =
            new AeronClusterStore(
                cluster.members, cluster.options().withLease(Duration.ofMinutes(1)))) {
      List<Path> firstParts =
          IntStream.range(0, TestCluster.SIZE)
              .mapToObj(i -> directory.resolve("m" + i).resolve("archive").resolve("0-0.rec"))
              .toList();
      Until.holds(() -> firstParts.stream().allMatch(Files::exists));
      byte[] value = new byte[20_000];
      int writes = 0;
      while (firstParts.stream().anyMatch(Files::exists)) {
        store.set("key" + writes++ % 3, value);
        pause();
      }

      // The log that a member misses is not truncated before it comes back.
      int follower = (store.leader() + 1) % TestCluster.SIZE;
      cluster.servers().get(follower).close();
      for (int i = 0; i < 400; i++) {
        store.set("key" + writes++ % 3, value);
        pause();
      }
      store.set("last", Integer.toString(writes));
      cluster.restart(follower);
      Until.holds(() -> cluster.servers().get(follower).isReady());

      // A member that lost its folder takes another's.
      cluster.stopAll();
      deleteAll(directory.resolve("m2"));
      copyState(directory.resolve("m0"), directory.resolve("m2"));
      cluster.startAll();
      AeronStoreOptions other = cluster.options().withLease(TestCluster.LEASE.plusSeconds(1));
      try (Store again = new AeronClusterStore(cluster.members, other)) {
        assertThat(again.get("last"))
            .asString(StandardCharsets.UTF_8)
            .isEqualTo(Integer.toString(writes));
        assertThat(again.get("key0")).isEqualTo(value);
        Until.holds(() -> cluster.servers().get(2).isReady());
      }
    }
  }

  private static void pause() throws InterruptedException {
    TimeUnit.MILLISECONDS.sleep(10); // lets slow members catch up
  }

  private static void deleteAll(Path folder) throws IOException {
    try (Stream<Path> all = Files.walk(folder)) {
      for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(path);
      }
    }
  }

  private static void copyState(Path from, Path to) throws IOException {
    for (String part : List.of("archive", "cluster")) {
      Files.createDirectories(to.resolve(part));
      try (Stream<Path> files = Files.list(from.resolve(part))) {
        for (Path file : files.toList()) {
          Files.copy(file, to.resolve(part).resolve(file.getFileName()));
        }
      }
    }
  }

  private interface Ask {
    byte[] run();
  }

  private static CompletableFuture<byte[]> asker(Ask ask) {
    return CompletableFuture.supplyAsync(
        ask::run, task -> Thread.ofPlatform().daemon().start(task));
  }

  @Test
  void whoHasNotTheTokenIsRefusedAndNoiseIsPassedOver() throws Exception {
    try (TestCluster cluster = new TestCluster(directory, TOKEN);
        AeronClusterStore store = cluster.connect()) {
      store.set("key", "value");
      AeronStoreOptions options = cluster.options();
      assertThatThrownBy(
              () -> new AeronClusterStore(cluster.members, options.withToken(JobToken.NONE)))
          .isInstanceOf(StoreTokenException.class)
          .hasMessageContaining("it requires a token, but this process has none; TUTTI_TOKEN must");
      assertThatThrownBy(
              () ->
                  new AeronClusterStore(
                      cluster.members, options.withToken(JobToken.of("another one of 16"))))
          .isInstanceOf(StoreTokenException.class)
          .hasMessageContaining("it did not prove that it has the same token");
      sendNoise(ClusterMembers.parse(cluster.members));
      try (Store other = new AeronClusterStore(cluster.members, options.withSpin(true))) {
        assertThat(other.get("key")).asString(StandardCharsets.UTF_8).isEqualTo("value");
      }
      assertThat(cluster.servers()).allMatch(AeronClusterServer::isRunning);

      assertThatThrownBy(() -> cluster.start(1))
          .isInstanceOf(StoreConnectionException.class)
          .hasMessageContaining("for a member of a store cluster is in use")
          .hasMessageContaining("the member needs ports");
      assertThatThrownBy(
              () ->
                  new AeronClusterServer(
                      TestCluster.freeMembers(), 0, directory.resolve("m0"), options))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("is in use by another member of a store cluster");
    }
    assertThatThrownBy(
            () ->
                new AeronClusterServer(
                    TestCluster.freeMembers(),
                    0,
                    directory.resolve("m0"),
                    AeronStoreOptions.of("localhost", 0)))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("the members of a cluster cannot change");
  }

  /** Sends random datagrams to all ports of all members. */
  private static void sendNoise(ClusterMembers members) throws Exception {
    Random random = new Random(2);
    try (DatagramSocket socket = new DatagramSocket()) {
      for (int i = 0; i < 3000; i++) {
        byte[] bytes = new byte[random.nextInt(1, 1400)];
        random.nextBytes(bytes);
        int port = members.member(i % 3).port() + random.nextInt(ClusterMembers.PORTS);
        socket.send(
            new DatagramPacket(bytes, bytes.length, InetAddress.getLoopbackAddress(), port));
      }
    }
  }

  @Tag("full")
  @Test
  void aKilledClientLeavesItsWillsWhenItHasBeenSilentForLong() throws Exception {
    try (TestCluster cluster = new TestCluster(directory, JobToken.NONE);
        AeronClusterStore store = cluster.connect();
        StoreChild client =
            ClusterChild.start(
                "will", 1, "MEMBERS=" + cluster.members, "TUTTI_AERON_DIR=" + directory)) {
      assertThat(client.line()).isEqualTo("READY false");
      store.set("will/1", "there");
      client.kill();
      assertThat(store.get("will/2", LONG)).asString(StandardCharsets.UTF_8).isEqualTo("gone");
      assertThat(store.get("will/3", LONG)).asString(StandardCharsets.UTF_8).isEqualTo("both");
    }
  }

  private AeronStoreOptions options() {
    return AeronStoreOptions.of("localhost", 0)
        .withDirectory(directory)
        .withToken(JobToken.NONE)
        .withLease(SHORT)
        .withTimeout(LONG);
  }

  @Test
  void aMemberThatCannotLoadItsSnapshotEnds() throws Exception {
    String member = TestCluster.freeMember();
    AeronStoreOptions options = options();
    Path data = directory.resolve("data");
    try (AeronClusterServer server = new AeronClusterServer(member, 0, data, options);
        Store store = new AeronClusterStore(member, options)) {
      store.set("garbled", "value");
      assertThat(server.takeSnapshot()).isTrue();
      Until.holds(() -> server.snapshots() == 1);
    }
    assertThat(garble(data.resolve("archive"), "garbled")).isPositive();
    try (AeronClusterServer server = new AeronClusterServer(member, 0, data, options)) {
      Until.holds(() -> !server.isRunning());
      assertThat(server.isLeader()).isFalse();
      assertThat(server.isReady()).isFalse();
      assertThat(server.takeSnapshot()).isFalse();
    }
  }

  @Test
  void noSnapshotIsTakenUntilAllMembersFollow() throws Exception {
    try (TestCluster cluster = new TestCluster(directory, JobToken.NONE, 10_000);
        Store store = cluster.connect()) {
      Until.holds(() -> cluster.servers().stream().allMatch(AeronClusterServer::isReady));
      AeronClusterServer leader = cluster.leader().orElseThrow();
      int lead = cluster.servers().indexOf(leader);
      int gone = (lead + 1) % TestCluster.SIZE;
      store.set("key", new byte[20_000]);
      Until.holds(() -> leader.snapshots() == 1);
      cluster.servers().get(gone).close();
      store.set("key", new byte[20_000]);
      Until.holds(
          () -> leader.snapshots() == 2); // the member that left has the log up to the first one
      store.set("key", new byte[20_000]);
      Path alive = directory.resolve("m" + lead).resolve("alive");
      for (int i = 0; i < 3; i++) {
        FileTime last = Files.getLastModifiedTime(alive);
        Until.holds(() -> isChanged(alive, last));
      }
      assertThat(leader.snapshots()).isEqualTo(2);
      cluster.restart(gone);
      Until.holds(() -> leader.snapshots() > 2);
    }
  }

  private static boolean isChanged(Path file, FileTime last) {
    try {
      return !Files.getLastModifiedTime(file).equals(last);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Corrupts the length of a key wherever it is written; returns the number of places. */
  private static int garble(Path archive, String key) throws IOException {
    int found = 0;
    try (Stream<Path> files = Files.list(archive)) {
      for (Path file : files.filter(path -> path.toString().endsWith(".rec")).toList()) {
        byte[] bytes = Files.readAllBytes(file);
        String text = new String(bytes, StandardCharsets.ISO_8859_1);
        for (int at = text.indexOf(key); at >= 0; at = text.indexOf(key, at + 1)) {
          bytes[at - 1] = -1;
          found++;
        }
        Files.write(file, bytes);
      }
    }
    return found;
  }

  @Test
  void wrongMembersAreNamed() {
    assertThatThrownBy(() -> ClusterMembers.parse("a:29500,b"))
        .hasMessageContaining("member b of a store cluster needs a port from 1 to 65531");
    assertThatThrownBy(() -> ClusterMembers.parse("a:29500,a:29504"))
        .hasMessageContaining("members a:29500 and a:29504 of a store cluster overlap");
    assertThatThrownBy(() -> ClusterMembers.parse("a:29500").member(1))
        .hasMessageContaining("no member 1 in a:29500; members are numbered from 0");
    assertThat(ClusterMembers.parse("a:1, [::1]:9").endpoints())
        .isEqualTo("0,a:1,a:2,a:3,a:4,a:5|1,[::1]:9,[::1]:10,[::1]:11,[::1]:12,[::1]:13");
  }

  @Test
  void hostsThatCannotBeResolvedAreNamedAndNotAskedForAllTheTime() throws Exception {
    AeronStoreOptions options =
        AeronStoreOptions.of("localhost", 0).withTimeout(Duration.ofMillis(1500));
    String none = "no-a.invalid:29500,no-b.invalid:29500,no-b.invalid:29600";
    Matcher failure =
        Pattern.compile(
                "no session with the store cluster at (.*) within 1500 ms, (\\d+) attempts?: cannot"
                    + " resolve no-a.invalid, no-b.invalid \\(.*")
            .matcher(failureOf(none, options));
    assertThat(failure.matches()).as(failure.toString()).isTrue();
    assertThat(failure.group(1)).isEqualTo(none);
    // 1, 2, 4 ... 64 ms, and then every 100 ms.
    assertThat(Integer.parseInt(failure.group(2))).isBetween(1, 25);
    assertThat(failureOf(TestCluster.freeMembers() + ",no-a.invalid:29500", options))
        .contains("cannot resolve no-a.invalid (");
  }

  @Test
  @Tag("full")
  void aMemberForAllSaysSoUnlessItIsOnLoopback(@TempDir Path folder) throws Exception {
    InetAddress host =
        NetworkInterface.networkInterfaces()
            .flatMap(NetworkInterface::inetAddresses)
            .filter(address -> address instanceof Inet4Address && !address.isLoopbackAddress())
            .findFirst()
            .orElse(null);
    assumeThat(host).as("an address of this host that others reach").isNotNull();
    String port = TestCluster.freeMembers().split(",", -1)[0].split(":", -1)[1];
    List<String> logged = new CopyOnWriteArrayList<>();
    Handler handler =
        new Handler() {
          @Override
          public void publish(LogRecord entry) {
            if (entry.getMessage().contains(":" + port + " ")) {
              logged.add(entry.getLevel() + " " + entry.getMessage());
            }
          }

          @Override
          public void flush() {}

          @Override
          public void close() {}
        };
    Logger logger = Logger.getLogger(AeronClusterServer.class.getName());
    AeronStoreOptions options = AeronStoreOptions.of("localhost", 0);
    logger.addHandler(handler);
    try {
      for (String name : List.of("127.0.0.1", "localhost", host.getHostAddress())) {
        new AeronClusterServer(
                name + ":" + port, 0, folder.resolve(name), options.withToken(JobToken.NONE))
            .close();
      }
      new AeronClusterServer(
              host.getHostAddress() + ":" + port,
              0,
              folder.resolve("token"),
              options.withToken(JobToken.of("secret of members")))
          .close();
    } finally {
      logger.removeHandler(handler);
    }
    assertThat(logged)
        .containsExactly(
            "WARNING store cluster at %s:%s accepts any client that reaches it; TUTTI_TOKEN is not set"
                .formatted(host.getHostAddress(), port));
  }

  private static String failureOf(String members, AeronStoreOptions options) {
    return catchThrowableOfType(
            StoreConnectionException.class, () -> new AeronClusterStore(members, options).close())
        .getMessage();
  }

  @Test
  void noLeaderIsToldAtTheDeadline() throws Exception {
    String members = TestCluster.freeMembers();
    AeronStoreOptions options =
        AeronStoreOptions.of("localhost", 0).withTimeout(Duration.ofMillis(700));
    assertThatThrownBy(() -> new AeronClusterStore(members, options))
        .isInstanceOf(StoreConnectionException.class)
        .hasMessageContaining("no leader of the store cluster at " + members + " within 700 ms");
  }
}
