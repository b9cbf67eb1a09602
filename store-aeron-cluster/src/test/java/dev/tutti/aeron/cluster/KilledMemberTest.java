package dev.tutti.aeron.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.StoreChild;
import dev.tutti.shared.Until;
import dev.tutti.store.JobToken;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Kills members of a cluster as kill -9 does: nothing is lost, and nothing is done twice. */
@Tag("full")
@Timeout(value = 15, unit = TimeUnit.MINUTES)
class KilledMemberTest {
  private static final Duration LONG = Duration.ofSeconds(100);
  private static final int MOST_TRIES = 3;
  private static final Duration SERVED_AGAIN = LONG.dividedBy(2);

  private static final Executor THREADS = task -> Thread.ofPlatform().daemon().start(task);

  @TempDir private Path directory;

  private StoreChild start(String members, int member) throws Exception {
    return ClusterChild.start(
        "member",
        member,
        "MEMBERS=" + members,
        "DATA=" + directory.resolve("m" + member),
        "TUTTI_AERON_LEASE=" + TestCluster.LEASE.toSeconds() + "s",
        "TUTTI_AERON_DIR=" + directory);
  }

  @Test
  void aKilledLeaderLosesNothingAndARestartedMemberTakesOver() throws Exception {
    String members = TestCluster.freeMembers();
    List<StoreChild> children = new ArrayList<>();
    try {
      for (int i = 0; i < TestCluster.SIZE; i++) {
        children.add(start(members, i));
      }
      for (StoreChild child : children) {
        assertThat(child.line()).isEqualTo("READY true");
      }
      AeronStoreOptions options =
          AeronStoreOptions.of("localhost", 0)
              .withToken(JobToken.NONE)
              .withLease(TestCluster.LEASE)
              .withTimeout(LONG);
      try (AeronClusterStore store = new AeronClusterStore(members, options)) {
        store.set("key", "value");
        Load load = new Load(store);
        CompletableFuture<Void> waiter =
            CompletableFuture.runAsync(
                () -> store.await(List.of("first", "second"), Duration.ofMinutes(14)), THREADS);

        int first = killLeader(store, children, load);
        store.set("first", "1");
        children.set(first, start(members, first));
        assertThat(children.get(first).line()).isEqualTo("READY true");
        load.awaitMore(20);

        // Without the restarted member there would be no majority now.
        int second = killLeader(store, children, load);
        for (int tries = 0; second == first; tries++) {
          // It led again, as it may after a busy machine made the next leader stand still.
          assertThat(tries).isLessThan(MOST_TRIES);
          children.set(first, start(members, first));
          assertThat(children.get(first).line()).isEqualTo("READY true");
          load.awaitMore(20);
          second = killLeader(store, children, load);
        }
        assertThat(waiter).isNotDone();
        store.set("second", "2");
        waiter.get(LONG.toSeconds(), TimeUnit.SECONDS);

        long added = load.stop();
        assertThat(store.add("counter", 0)).isEqualTo(added);
        assertThat(store.queueLength("queue")).isEqualTo(added);
        for (long i = 1; i <= added; i++) {
          assertThat(store.queuePop("queue", Duration.ZERO))
              .asString(StandardCharsets.UTF_8)
              .isEqualTo(Long.toString(i));
        }
        assertThat(store.get("key")).asString(StandardCharsets.UTF_8).isEqualTo("value");
      }
    } finally {
      for (StoreChild child : children) {
        child.close();
      }
    }
  }

  /** Kills the leader, and waits until calls continue. */
  private static int killLeader(AeronClusterStore store, List<StoreChild> children, Load load)
      throws Exception {
    int leader = store.leader();
    long start = System.nanoTime();
    children.get(leader).kill();
    load.awaitMore(20);
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(SERVED_AGAIN);
    assertThat(store.leader()).isNotEqualTo(leader);
    return leader;
  }

  /** A load that adds to a counter and then pushes its value, repeatedly. */
  private static final class Load {
    private final AtomicBoolean stopped = new AtomicBoolean();
    private final AtomicLong added = new AtomicLong();
    private final CompletableFuture<Void> thread;

    Load(AeronClusterStore store) {
      thread =
          CompletableFuture.runAsync(
              () -> {
                while (!stopped.get()) {
                  long value = store.add("counter", 1);
                  store.queuePush("queue", Long.toString(value).getBytes(StandardCharsets.UTF_8));
                  added.set(value);
                }
              },
              THREADS);
    }

    void awaitMore(int more) throws Exception {
      long goal = added.get() + more;
      Until.holds(
          () -> {
            assertThat(thread).isNotDone();
            return added.get() >= goal;
          });
    }

    long stop() throws Exception {
      stopped.set(true);
      thread.get(LONG.toSeconds(), TimeUnit.SECONDS);
      return added.get();
    }
  }
}
