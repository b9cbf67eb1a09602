package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.StoreTokenException;
import dev.tutti.aeron.AeronStore;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.store.StoreKind;
import dev.tutti.shared.FreePorts;
import dev.tutti.store.JobToken;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreOptions;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class StoreRendezvousFactoryTest {
  private static final Duration LIMIT = Duration.ofMinutes(2);

  private static LaunchPlan plan(Map<String, String> environment) {
    return plan(0, 1, 0, environment);
  }

  private static LaunchPlan plan(int node, int nodes, int port) {
    return plan(node, nodes, port, Map.of("TUTTI_TOKEN", ""));
  }

  private static LaunchPlan plan(int node, int nodes, int port, Map<String, String> environment) {
    return new LaunchPlan(
        List.of("true"),
        2,
        nodes,
        node,
        "127.0.0.1",
        port,
        0,
        "job",
        "default",
        Optional.empty(),
        20,
        Duration.ZERO,
        LIMIT,
        LIMIT,
        environment,
        Optional.empty(),
        false,
        Optional.empty());
  }

  @Test
  void theStoreOfTheRanksAsksForTheirToken() throws Exception {
    Map<String, String> environment = Map.of("TUTTI_TOKEN", "that of the ranks");
    LaunchPlan plan = plan(environment);
    try (LaunchRendezvous rendezvous = new StoreRendezvousFactory().open(plan, _ -> {})) {
      RankRange ranks = rendezvous.join(_ -> {});
      assertThat(RankEnvironment.of(plan, ranks, 1, 0)).containsAllEntriesOf(environment);
      TcpStoreOptions options =
          TcpStoreOptions.of(ranks.masterAddress(), ranks.masterPort()).withTimeout(LIMIT);
      assertThatThrownBy(() -> new TcpStore(options.withToken(JobToken.NONE)))
          .isInstanceOf(StoreTokenException.class);
      try (TcpStore store = new TcpStore(options.withToken(JobToken.of("that of the ranks")))) {
        assertThat(store.add("n", 1)).isEqualTo(1);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "aeron"})
  void theNextAttemptFindsNothingThatRanksLeft(String kind) throws Exception {
    Map<String, String> environment = Map.of("TUTTI_STORE", kind, "TUTTI_TOKEN", "");
    try (LaunchRendezvous rendezvous =
        new StoreRendezvousFactory().open(plan(environment), _ -> {})) {
      int port = rendezvous.join(_ -> {}).masterPort();
      try (Store ranks =
          StoreKind.of(kind)
              .connect("127.0.0.1", port, LIMIT, Settings.ofEnvironment(environment))) {
        ranks.set("key", "value");
        ranks.queuePush("queue", new byte[] {1});
        ranks.set("tutti-run/key", "of the launchers");
        assertThat(ranks.queueLength("queue")).isEqualTo(1);
        ((Restarts) rendezvous).awaitStopped(0, LIMIT);
        assertThat(ranks.queueLength("queue")).isZero();
        assertThat(ranks.check(List.of("queue"))).isFalse();
        assertThat(ranks.listKeys()).containsExactly("tutti-run/key");
      }
    }
  }

  @Test
  void aNodeThatComesToASingleOneIsToldSo() throws Exception {
    int port = FreePorts.one();
    try (LaunchRendezvous alone = new StoreRendezvousFactory().open(plan(0, 1, port), _ -> {});
        LaunchRendezvous second = new StoreRendezvousFactory().open(plan(1, 2, port), _ -> {})) {
      assertThat(alone.join(_ -> {}).worldSize()).isEqualTo(2);
      assertThatThrownBy(() -> second.join(_ -> {}))
          .isInstanceOf(LaunchException.class)
          .hasMessage(
              "node 0 was started with --nnodes=1, node 1 with --nnodes=2; give all nodes the same"
                  + " value");
    }
  }

  @Test
  void theStoreOfTheRanksIsOfTheKindThatTheyAskFor() throws Exception {
    LaunchPlan plan = plan(Map.of("TUTTI_STORE", "aeron"));
    try (LaunchRendezvous rendezvous = new StoreRendezvousFactory().open(plan, _ -> {})) {
      RankRange ranks = rendezvous.join(_ -> {});
      try (AeronStore store = new AeronStore(ranks.masterAddress(), ranks.masterPort())) {
        assertThat(store.add("n", 1)).isEqualTo(1);
        assertThat(store.isShared()).isTrue();
      }
    }
    assertThatThrownBy(
            () -> new StoreRendezvousFactory().open(plan(Map.of("TUTTI_STORE", "file")), _ -> {}))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("cannot serve a store with the scheme 'file'; the schemes are tcp, aeron");
  }
}
