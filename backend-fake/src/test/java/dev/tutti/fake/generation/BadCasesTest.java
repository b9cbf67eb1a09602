package dev.tutti.fake.generation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReconfigureOptions;
import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.StoreException;
import dev.tutti.Tensor;
import dev.tutti.fake.ThreadedProvider;
import dev.tutti.fake.simulation.FaultPlan;
import dev.tutti.fake.simulation.FaultPlan.Fault;
import dev.tutti.fake.simulation.FaultPlan.Kind;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.fake.simulation.SimulatedWorld.Outcome;
import dev.tutti.store.JobToken;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreOptions;
import dev.tutti.store.tcp.TcpStoreServer;
import java.net.InetAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests changes of members whose store is out of reach, lost, or of another job. */
@Timeout(300)
@Isolated("threads of other tests in shared locks would bring in real time")
class BadCasesTest {
  private static final int SEEDS = Integer.getInteger("tutti.seeds", 20);
  private static final Duration TIMEOUT = Duration.ofSeconds(8);

  @Test
  void whoDoesNotReachTheStoreContinuesInNoGeneration() {
    Fault cutOff = new Fault(Kind.CUT_OFF, 2, Duration.ofSeconds(2), Duration.ofMinutes(5));
    for (long seed = 0; seed < SEEDS; seed++) {
      List<String> generations = new ArrayList<>();
      Outcome outcome =
          SimulatedWorld.of(3)
              .withSeed(seed)
              .withTimeout(TIMEOUT)
              .withFaults(new FaultPlan(List.of(cutOff)))
              .run(group -> change(group, generations));
      String what = "seed %d, %s, %s".formatted(seed, generations, outcome);
      assertThat(generations).as(what).hasSize(2).allMatch(each -> each.matches("0~\\d+ of 2: 2"));
      assertThat(generations.stream().distinct()).as(what).hasSize(1);
      assertThat(outcome.ends().get(0).failure()).as(what).isNull();
      assertThat(outcome.ends().get(1).failure()).as(what).isNull();
      assertThat(outcome.ends().get(2).failure()).as(what).isInstanceOf(StoreException.class);
    }
  }

  private static void change(ProcessGroup group, List<String> generations) {
    SimulatedWorld.sleep(Duration.ofSeconds(4));
    ProcessGroup next = group.reconfigure(ReconfigureOptions.DEFAULT.withTimeout(TIMEOUT));
    Tensor sum = Tensor.of(1L);
    next.allReduce(sum);
    generations.add("%s of %d: %d".formatted(next.name(), next.size(), sum.getLong(0)));
    next.close();
  }

  private static GroupOptions options(int port) {
    return GroupOptions.DEFAULT
        .withStore(new TcpStore("127.0.0.1", port))
        .withProvider(new ThreadedProvider());
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void withoutItsStoreAJobHasNoNextGeneration(boolean isRestarted) throws Exception {
    List<Future<ProcessGroup>> ranks = new ArrayList<>();
    InetAddress loopback = InetAddress.getLoopbackAddress();
    try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
      int port;
      try (TcpStoreServer server = new TcpStoreServer(loopback, 0)) {
        port = server.port();
        for (int rank = 0; rank < 2; rank++) {
          GroupOptions own = options(server.port()).withRank(rank).withSize(2);
          ranks.add(threads.submit(() -> ProcessGroup.init(own)));
        }
        for (Future<ProcessGroup> rank : ranks) {
          assertThat(rank.get().name()).isEqualTo("0");
        }
      }
      try (TcpStoreServer again = isRestarted ? new TcpStoreServer(loopback, port) : null) {
        assertThatNoneContinues(ranks, threads);
        if (again != null) {
          try (TcpStore store = new TcpStore("127.0.0.1", port)) {
            assertThat(store.listKeys()).isEmpty();
          }
        }
      }
    }
  }

  private static void assertThatNoneContinues(
      List<Future<ProcessGroup>> ranks, ExecutorService threads) throws Exception {
    List<Future<?>> ends = new ArrayList<>();
    for (Future<ProcessGroup> rank : ranks) {
      ends.add(
          threads.submit(
              () -> {
                assertThatThrownBy(rank.get()::shrink).isInstanceOf(StoreException.class);
                rank.get().close();
                return null;
              }));
    }
    for (Future<?> end : ends) {
      assertThat(end.get()).isNull();
    }
  }

  @Test
  void aWrongTokenIsRefusedBeforeAnythingIsWritten() throws Exception {
    JobToken token = JobToken.of("0123456789abcdef");
    try (TcpStoreServer server = new TcpStoreServer(InetAddress.getLoopbackAddress(), 0, token)) {
      Map<String, String> environment =
          Map.of(
              "MASTER_ADDR",
              "127.0.0.1",
              "MASTER_PORT",
              Integer.toString(server.port()),
              "TORCHELASTIC_USE_AGENT_STORE",
              "True",
              "TUTTI_TOKEN",
              "fedcba9876543210");
      GroupOptions stranger =
          GroupOptions.DEFAULT
              .withSettings(Settings.ofEnvironment(environment))
              .withProvider(new ThreadedProvider());
      assertThatThrownBy(() -> ProcessGroup.join(stranger))
          .isInstanceOf(RendezvousException.class)
          .hasMessageContaining("token");
      try (TcpStore store =
          new TcpStore(TcpStoreOptions.of("127.0.0.1", server.port()).withToken(token))) {
        assertThat(store.listKeys()).isEmpty();
      }
    }
  }
}
