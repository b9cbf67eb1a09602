package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.GroupOptions;
import dev.tutti.PeerFailedException;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.Tensor;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedHost;
import dev.tutti.gloo.GlooProvider;
import dev.tutti.gloo.transport.GarbagePeerTest.Garbage;
import dev.tutti.store.HashStore;
import dev.tutti.store.PrefixStore;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.parallel.Isolated;

/**
 * Runs a group of two ranks on a simulated network, in which the other rank sends invalid messages.
 */
@Isolated("threads of other tests in shared locks would bring in real time")
class SimulatedGarbageTest {
  private static final Duration TIMEOUT = Duration.ofMinutes(2);
  private static final Duration SOON = Duration.ofSeconds(1);

  @Simulated
  void whoSendsTextIsNamedAtOnce() throws Exception {
    run(Garbage.TEXT);
  }

  @Simulated
  void whoSendsNoiseIsNamedAtOnce() throws Exception {
    run(Garbage.NOISE);
  }

  @Simulated
  void whoSendsMoreThanAnybodyTakesIsNamedAtOnce() throws Exception {
    run(Garbage.OVERSIZED);
  }

  @Simulated
  void whoSendsANegativeLengthIsNamedAtOnce() throws Exception {
    run(Garbage.NEGATIVE);
  }

  @Simulated
  void whoEndsWithinAHeaderIsNamedAtOnce() throws Exception {
    run(Garbage.TRUNCATED);
  }

  private static void run(Garbage garbage) throws Exception {
    SimulatedHost here = SimulatedHost.current();
    SimulatedHost there = here.newHost("peer");
    HashStore store = new HashStore(TIMEOUT, here.time());
    RawPeer peer = new RawPeer(false, there.channels(), there.address());
    FutureTask<Void> joining =
        new FutureTask<>(
            () -> {
              peer.join(new PrefixStore("cpu/", new PrefixStore("0/", store)));
              return null;
            });
    Thread _ = there.time().start("peer", joining);
    try (ProcessGroup group = ProcessGroup.init(options(here, store));
        peer) {
      joining.get();
      FutureTask<Void> sending = new FutureTask<>(() -> send(peer, garbage), null);
      Thread _ = there.time().start("sender", sending);
      long start = here.time().nanoTime();
      assertThatThrownBy(() -> group.allReduce(Tensor.of(1f, 2f)))
          .isInstanceOfSatisfying(
              PeerFailedException.class, named -> assertThat(named.failedRank()).hasValue(1))
          .hasMessageContaining("rank 1")
          .hasMessageContaining(garbage.text);
      assertThat(Duration.ofNanos(here.time().nanoTime() - start)).isLessThan(SOON);
      sending.get();
    }
  }

  private static GroupOptions options(SimulatedHost host, Store store) {
    return GroupOptions.DEFAULT
        .withStore(store)
        .withRank(0)
        .withSize(2)
        .withTime(host.time())
        .withProvider(new GlooProvider(host.channels(), host.address()))
        .withSettings(Settings.ofEnvironment(Map.of(GlooProvider.SPIN.name(), "0")))
        .withTimeout(TIMEOUT);
  }

  /** Sends as much as the rank takes before it breaks the connection. */
  private static void send(RawPeer peer, Garbage garbage) {
    try {
      peer.send(garbage.bytes());
      if (garbage == Garbage.TRUNCATED) {
        peer.die();
      }
    } catch (IOException e) {
      assertThat(e).hasMessageMatching("Connection reset by peer|Broken pipe");
    }
  }
}
