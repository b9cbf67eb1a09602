package dev.tutti.aeron.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.SharedStore;
import dev.tutti.aeron.StoreChild;
import dev.tutti.contracts.history.HistoryCall;
import dev.tutti.contracts.history.HistoryRun;
import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

/**
 * Histories of the clients of a cluster, during each of which every kind of fault happens once, in
 * random order: killed and stopped members, a lost folder, cut networks, and full disks.
 */
final class ClusterCampaign implements AutoCloseable {
  private static final int CALLS = 60;
  private static final int CLIENTS = 4;
  private static final int LARGEST = 1_500_000;
  private static final String HEAP = "512m";
  private static final long SHORT = TimeUnit.SECONDS.toNanos(4);
  private static final long LONG = TimeUnit.SECONDS.toNanos(9);

  private final Random random;
  private final MemberHosts hosts;
  private final Path shared;
  private final List<StoreChild> children = new ArrayList<>();
  private final AtomicInteger opened = new AtomicInteger();
  private final long begun = Time.SYSTEM.nanoTime();
  private int histories;
  private int answered;
  private int failed;
  private int kills;
  private int ends;
  private Duration longestGap = Duration.ZERO;

  /** What happens to the members. */
  private enum Fault {
    KILL_LEADER,
    KILL_TWO,
    KILL_ALL,
    KILL_BEHIND,
    LOSE_FOLDER,
    STOP_LEADER,
    STOP_TWO,
    CUT_LEADER,
    CUT_TWO,
    DEAFEN_LEADER,
    ISOLATE_LEADER,
    FILL_DISK,
    FILL_DISKS;

    boolean needsHosts() {
      return compareTo(CUT_LEADER) >= 0;
    }
  }

  /**
   * Starts a cluster.
   *
   * @param directory an empty folder
   * @param seed the seed of the calls and faults
   */
  ClusterCampaign(Path directory, long seed) throws Exception {
    random = new Random(seed);
    hosts = new MemberHosts(directory);
    shared = Files.createDirectory(directory.resolve("shared"));
    try {
      for (int member = 0; member < TestCluster.SIZE; member++) {
        children.add(start(member));
      }
      awaitReady(List.of(0, 1, 2));
    } catch (Exception | Error e) {
      close();
      throw e;
    }
  }

  private StoreChild start(int member) throws Exception {
    return ClusterChild.start(
        hosts.on(member),
        HEAP,
        "member",
        member,
        "MEMBERS=" + hosts.members(),
        "DATA=" + hosts.disk(member).resolve("data"),
        "TUTTI_AERON_DIR=" + shared);
  }

  /** Opens a store with one of two sessions of this process. */
  private AeronClusterStore connect() {
    Duration lease = AeronStoreOptions.of("localhost", 0).lease();
    AeronStoreOptions options =
        AeronStoreOptions.of("localhost", 0)
            .withToken(JobToken.NONE)
            .withDirectory(shared)
            .withLease(lease.plusMillis(opened.getAndIncrement() % 2))
            .withTimeout(Duration.ofSeconds(60));
    return new AeronClusterStore(hosts.members(), options);
  }

  /** Makes histories until the time is over, but at least one. */
  void run(Duration time) throws Exception {
    do {
      runHistory();
    } while (Time.SYSTEM.nanoTime() - begun < time.toNanos());
    report("end");
  }

  private void runHistory() throws Exception {
    List<Fault> faults = new ArrayList<>(List.of(Fault.values()));
    Collections.shuffle(faults, random);
    try (HistoryRun run = new HistoryRun(histories, CLIENTS, true, LARGEST, this::connect)) {
      for (Fault fault : faults) {
        if (hosts.areSeparate() || !fault.needsHosts()) {
          run.awaitAnswers(CALLS);
          report(fault.toString());
          inflict(fault, run);
          restartEnded(fault);
          run.awaitAnswers(CALLS);
          report("longest gap of this history so far " + run.longestGap().toMillis() + " ms");
        }
      }
      assertThat(run.end()).as("history %d", histories).isEmpty();
      int all = run.history().size();
      int right =
          (int) run.history().stream().filter(call -> call.returned() != HistoryCall.NEVER).count();
      answered += right;
      failed += all - right;
      longestGap = run.longestGap().compareTo(longestGap) > 0 ? run.longestGap() : longestGap;
    }
    histories++;
    try (Store store = connect()) {
      SharedStore.deleteAll(store);
    }
  }

  private void inflict(Fault fault, HistoryRun run) throws Exception {
    int leader = leader();
    int second = (leader + 1 + random.nextInt(TestCluster.SIZE - 1)) % TestCluster.SIZE;
    int third = TestCluster.SIZE - leader - second;
    switch (fault) {
      case KILL_LEADER -> {
        kill(List.of(leader));
        run.awaitAnswers(CALLS);
        restart(List.of(leader));
      }
      case KILL_TWO -> {
        kill(List.of(leader, second));
        restart(List.of(leader, second));
      }
      case KILL_ALL -> {
        kill(List.of(0, 1, 2));
        restart(List.of(0, 1, 2));
      }
      case KILL_BEHIND -> {
        kill(List.of(leader));
        run.awaitAnswers(CALLS);
        children.set(leader, start(leader));
        run.awaitAnswers(CALLS);
        kill(List.of(second));
        awaitReady(List.of(leader));
        restart(List.of(second));
      }
      case LOSE_FOLDER -> {
        kill(List.of(second));
        run.awaitAnswers(CALLS); // which the third has as well, and all before
        kill(List.of(third));
        for (String part : List.of("archive", "cluster")) {
          Path lost = hosts.disk(second).resolve("data").resolve(part);
          delete(lost);
          copy(hosts.disk(third).resolve("data").resolve(part), lost);
        }
        restart(List.of(second, third));
      }
      case STOP_LEADER -> stop(List.of(leader), LONG);
      case STOP_TWO -> stop(List.of(leader, second), SHORT);
      case CUT_LEADER -> {
        cutBoth(leader, second);
        cutBoth(leader, third);
        heal(LONG);
      }
      case CUT_TWO -> {
        cutBoth(leader, second);
        heal(LONG);
      }
      case DEAFEN_LEADER -> {
        hosts.cut(second, leader);
        hosts.cut(third, leader);
        heal(LONG);
      }
      case ISOLATE_LEADER -> {
        for (int other = 0; other <= TestCluster.SIZE; other++) {
          if (other != leader) {
            cutBoth(leader, other);
          }
        }
        heal(LONG);
      }
      case FILL_DISK -> fill(List.of(random.nextInt(TestCluster.SIZE)));
      case FILL_DISKS -> fill(List.of(0, 1, 2));
    }
  }

  /** Returns the leader; any member if the session that this thread shares with clients is over. */
  private int leader() {
    try (AeronClusterStore store = connect()) {
      var _ = store.check("none");
      return store.leader();
    } catch (StoreException e) {
      return random.nextInt(TestCluster.SIZE);
    }
  }

  private void kill(List<Integer> members) throws Exception {
    for (int member : members) {
      children.get(member).kill();
      kills++;
    }
  }

  private void restart(List<Integer> members) throws Exception {
    for (int member : members) {
      children.get(member).close();
      children.set(member, start(member));
    }
    awaitReady(members);
  }

  private void awaitReady(List<Integer> members) throws Exception {
    for (int member : members) {
      assertThat(children.get(member).line()).as("member %d", member).isEqualTo("READY true");
    }
  }

  private void stop(List<Integer> members, long nanos) throws Exception {
    for (int member : members) {
      children.get(member).signal("STOP");
    }
    LockSupport.parkNanos(nanos);
    for (int member : members) {
      children.get(member).signal("CONT");
    }
  }

  private void cutBoth(int one, int other) throws Exception {
    hosts.cut(one, other);
    hosts.cut(other, one);
  }

  private void heal(long nanos) throws Exception {
    LockSupport.parkNanos(nanos);
    hosts.heal();
  }

  private void fill(List<Integer> members) throws Exception {
    for (int member : members) {
      hosts.fill(member);
    }
    LockSupport.parkNanos(SHORT);
    for (int member : members) {
      hosts.clear(member);
    }
    restart(members);
  }

  /** Restarts members that ended by themselves. */
  private void restartEnded(Fault fault) throws Exception {
    for (int member = 0; member < TestCluster.SIZE; member++) {
      if (!children.get(member).isAlive()) {
        ends++;
        report("member " + member + " ended by itself after " + fault);
        restart(List.of(member));
      }
    }
  }

  private static void copy(Path from, Path to) throws IOException {
    Files.createDirectory(to);
    try (Stream<Path> files = Files.list(from)) {
      for (Path file : files.toList()) {
        Files.copy(file, to.resolve(file.getFileName()));
      }
    }
  }

  private static void delete(Path folder) throws IOException {
    try (Stream<Path> all = Files.walk(folder)) {
      for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(path);
      }
    }
  }

  private void report(String what) {
    System.out.printf(
        "campaign %d s: %s; %d histories, %d kills, %d calls answered and %d not, longest gap %d"
            + " ms, %d members ended by themselves%n",
        TimeUnit.NANOSECONDS.toSeconds(Time.SYSTEM.nanoTime() - begun),
        what,
        histories,
        kills,
        answered,
        failed,
        longestGap.toMillis(),
        ends);
  }

  @Override
  public void close() throws IOException {
    for (StoreChild child : children) {
      child.close();
    }
    hosts.close();
  }
}
