package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.StoreException;
import dev.tutti.Tensor;
import dev.tutti.runtime.failure.RankClaim;
import dev.tutti.shared.FreePorts;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import dev.tutti.store.tcp.TcpStoreServer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests joining a job in which a rank fails to join, and joining a job again. */
@Timeout(300)
class SetUpTest {
  private static float sumOfRanks(GroupOptions options) {
    try (ProcessGroup group = ProcessGroup.init(options)) {
      Tensor sum = Tensor.of(group.rank() + 1f);
      group.allReduce(sum);
      return sum.toFloatArray()[0];
    }
  }

  @Test
  void aSecondInitOfARankIsRefusedAtOnceAndDisturbsNobody() throws Exception {
    HashStore store = new HashStore();
    LocalProvider provider = new LocalProvider();
    List<Float> sums =
        LocalWorld.ranks(
            2,
            store,
            provider,
            (options, rank) -> {
              if (rank == 0) {
                store.await(List.of("tutti/0/joined/1"), Duration.ofSeconds(60));
                assertThatThrownBy(() -> ProcessGroup.init(options.withRank(1)))
                    .isInstanceOf(RendezvousException.class)
                    .hasMessageStartingWith(
                        "rank 1 has already joined this job, in this same process (process "
                            + ProcessHandle.current().pid()
                            + " on ")
                    .hasMessageEndingWith(
                        "Call init() once, and get further groups from split() or subgroup() of"
                            + " the first");
                assertThat(store.check(List.of("tutti/0/left/1"))).isFalse();
              }
              return sumOfRanks(options);
            });
    assertThat(sums).containsExactly(3f, 3f);
  }

  @Test
  void aRankTakesThePlaceOfAProcessOfItsHostThatIsGone() throws Exception {
    Process process = new ProcessBuilder("sleep", "600").start();
    HashStore store = new HashStore();
    String holder = "process " + process.pid() + " on " + RankClaim.host() + ", 1f";
    store.set("seat", holder);
    try {
      assertThatThrownBy(() -> RankClaim.take(store, "seat", 1, Time.SYSTEM))
          .isInstanceOf(RendezvousException.class)
          .hasMessageContaining("already joined this job: " + holder);
    } finally {
      process.destroyForcibly().waitFor();
    }
    RankClaim.take(store, "seat", 1, Time.SYSTEM);
    assertThat(store.get("seat"))
        .asString(StandardCharsets.UTF_8)
        .startsWith("process " + ProcessHandle.current().pid() + " on " + RankClaim.host());

    store.set("seat", "process " + process.pid() + " on another host, 1f");
    assertThatThrownBy(() -> RankClaim.take(store, "seat", 1, Time.SYSTEM))
        .isInstanceOf(RendezvousException.class);
  }

  @Test
  void aRankThatWasKilledJoinsTheNextJobOfItsStore() throws Exception {
    HashStore store = new HashStore();
    store.set("tutti/0/joined/1", "process 1 on another host, 1f");
    store.set("tutti/0/event/1", "rank 1 is gone");
    store.set("tutti/0/left/0", "1");
    List<Float> sums =
        LocalWorld.ranks(2, store, new LocalProvider(), (options, rank) -> sumOfRanks(options));
    assertThat(sums).containsExactly(3f, 3f);
  }

  private static GroupOptions at(int port, int rank) {
    return GroupOptions.DEFAULT
        .withInitMethod("tcp://127.0.0.1:" + port)
        .withRank(rank)
        .withSize(2)
        .withTimeout(Duration.ofSeconds(60));
  }

  @Test
  @SuppressWarnings("try") // it is closed before the end
  void aRankThatJoinsAgainWaitsForTheServerOfTheNextJob() throws Exception {
    int port = FreePorts.one();
    LocalProvider first = new LocalProvider();
    LocalProvider second = new LocalProvider();
    try (ExecutorService threads = Executors.newFixedThreadPool(1);
        ProcessGroup served = ProcessGroup.init(at(port, 0).withProvider(first))) {
      ProcessGroup.init(at(port, 1).withProvider(first)).close();
      Future<Float> again = threads.submit(() -> sumOfRanks(at(port, 1).withProvider(second)));
      assertThatThrownBy(() -> again.get(300, TimeUnit.MILLISECONDS))
          .isInstanceOf(TimeoutException.class);
      served.close();
      assertThat(sumOfRanks(at(port, 0).withProvider(second))).isEqualTo(3f);
      assertThat(again.get(60, TimeUnit.SECONDS)).isEqualTo(3f);
    }
  }

  @Test
  void aRankWhoseOldJobIsServedStillSaysSo() {
    int port = FreePorts.one();
    LocalProvider provider = new LocalProvider();
    try (ProcessGroup _ = ProcessGroup.init(at(port, 0).withProvider(provider))) {
      ProcessGroup.init(at(port, 1).withProvider(provider)).close();
      assertThatThrownBy(
              () ->
                  ProcessGroup.init(
                      at(port, 1).withProvider(provider).withTimeout(Duration.ofSeconds(5))))
          .isInstanceOf(RendezvousException.class)
          .hasMessage(
              "rank 1/2 left the job at tcp://127.0.0.1:"
                  + port
                  + ", but rank 0 still serves its store because its group was not closed there");
    }
  }

  @Test
  void aStoreThatGoesAwayIsAFailureToMeet() {
    TcpStoreServer server = new TcpStoreServer(0);
    ScriptedProvider provider = new ScriptedProvider();
    provider.create =
        context -> {
          server.close();
          context.store().get("address/1", Duration.ofSeconds(60));
        };
    Map<String, String> environment =
        Map.of(
            "RANK", "0",
            "WORLD_SIZE", "2",
            "MASTER_ADDR", "127.0.0.1",
            "MASTER_PORT", Integer.toString(server.port()),
            "TORCHELASTIC_USE_AGENT_STORE", "True");
    assertThatThrownBy(
            () ->
                ProcessGroup.init(
                    GroupOptions.DEFAULT
                        .withProvider(provider)
                        .withTimeout(Duration.ofSeconds(60))
                        .withSettings(Settings.ofEnvironment(environment))))
        .isInstanceOf(RendezvousException.class)
        .hasMessageContaining("rank 0/2 cannot join the other ranks")
        .hasMessageContaining("tcp://127.0.0.1:" + server.port())
        .hasMessageContaining("Check that the launcher, which serves the store, is running")
        .hasCauseInstanceOf(StoreException.class);
  }

  @Test
  void aLinkErrorOfABackendIsReportedAsItsFailure() {
    ScriptedProvider provider = new ScriptedProvider();
    provider.create =
        context -> {
          throw new UnsatisfiedLinkError("libcuda.so.1 is missing");
        };
    assertThatThrownBy(provider::alone)
        .isInstanceOf(BackendException.class)
        .hasMessageContaining("libcuda.so.1 is missing")
        .hasMessageContaining("rank 0");
  }

  @Test
  void aStoreServesOneJobAfterTheOther() throws Exception {
    HashStore store = new HashStore();
    CountDownLatch used = new CountDownLatch(2);
    for (int round = 0; round < 3; round++) {
      int last = round;
      CountDownLatch failed = new CountDownLatch(2);
      LocalWorld.ranks(
          2,
          store,
          new LocalProvider(),
          (options, rank) -> {
            try (ProcessGroup group = ProcessGroup.init(options)) {
              Tensor tensor = Tensor.of(1f + rank);
              group.allReduce(tensor);
              assertThat(tensor.toFloatArray()).containsExactly(3);
              assertThat(group.store().check(List.of("left over"))).isFalse();
              ProcessGroup half = group.split(0, rank).orElseThrow();
              assertThat(half.rank()).isEqualTo(rank);
              group.barrier();
              group.store().set("left over", "1");
              // The abort would also end the barrier of a rank that has not left it yet.
              used.countDown();
              assertThat(used.await(60, TimeUnit.SECONDS)).isTrue();
              if (last == 0 && rank == 0) {
                group.abort("first job fails");
              }
              if (last == 0) {
                LocalWorld.until("the failure", () -> group.failure().isPresent());
                LocalWorld.endTogether(failed);
              }
            }
            return null;
          });
      if (round > 0) {
        // Otherwise a rank whose leave is late would still be in the job that it joins again.
        String left = "tutti/0." + round + "/left/";
        store.await(List.of(left + 0, left + 1), Duration.ofMinutes(1));
      }
    }
  }
}
