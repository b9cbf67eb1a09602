package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.GroupOptions;
import dev.tutti.PeerFailedException;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.Tensor;
import dev.tutti.contracts.TestTier;
import dev.tutti.fake.simulation.SimulatedHost;
import dev.tutti.fake.simulation.SimulatedProgram;
import dev.tutti.gloo.GlooProvider;
import dev.tutti.gloo.transport.GarbagePeerTest.Garbage;
import dev.tutti.gloo.transport.connect.PeerAddress;
import dev.tutti.gloo.transport.connect.RankBlob;
import dev.tutti.store.HashStore;
import dev.tutti.store.PrefixStore;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Runs a group of two ranks on a simulated network, in which the other rank sends invalid messages.
 */
class SimulatedGarbageTest {
  private static final int SEEDS = Integer.getInteger("tutti.seeds", TestTier.isFast() ? 10 : 200);
  private static final Duration TIMEOUT = Duration.ofMinutes(2);
  private static final Duration SOON = Duration.ofSeconds(1);

  @ParameterizedTest
  @EnumSource
  void thePeerIsNamedAtOnce(Garbage garbage) {
    for (long seed = 0; seed < SEEDS; seed++) {
      SimulatedProgram.Outcome outcome = SimulatedProgram.run(seed, _ -> run(garbage));
      assertThat(outcome.failure()).as("seed %d", seed).isNull();
    }
  }

  private static void run(Garbage garbage) throws Exception {
    SimulatedHost here = SimulatedHost.current();
    SimulatedHost there = here.newHost("peer");
    HashStore store = new HashStore(TIMEOUT, here.time());
    FutureTask<SocketChannel> joining =
        new FutureTask<>(() -> join(there, new PrefixStore("cpu/", new PrefixStore("0/", store))));
    Thread _ = there.time().start("peer", joining);
    try (ProcessGroup group = ProcessGroup.init(options(here, store));
        SocketChannel peer = joining.get()) {
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
  private static void send(SocketChannel peer, Garbage garbage) {
    try {
      ByteBuffer bytes = ByteBuffer.wrap(garbage.bytes());
      while (bytes.hasRemaining()) {
        int _ = peer.write(bytes);
      }
      if (garbage == Garbage.TRUNCATED) {
        peer.close();
      }
    } catch (IOException e) {
      assertThat(e).hasMessageMatching("Connection reset by peer|Broken pipe");
    }
  }

  /** Joins as rank 1, as a rank of PyTorch does. */
  private static SocketChannel join(SimulatedHost host, Store store) throws IOException {
    try (ServerSocketChannel listener = host.channels().openServerSocketChannel()) {
      ServerSocketChannel _ = listener.bind(new InetSocketAddress(host.address(), 0));
      InetSocketAddress at = (InetSocketAddress) listener.getLocalAddress();
      PeerAddress own = new PeerAddress(at, -1, false, 0, 0);
      store.set(
          "0/1", new RankBlob(TransportRendezvous.hostname(), own, new long[] {10, 11}).toBytes());
      RankBlob other = RankBlob.read(store.get("0/0", TIMEOUT), 2);
      long presented = other.identifiers()[1];
      if (own.compareRole(other.address(), 10, presented) < 0) {
        SocketChannel accepted = listener.accept();
        ByteBuffer greeting = ByteBuffer.allocate(Long.BYTES);
        while (greeting.hasRemaining()) {
          assertThat(accepted.read(greeting)).isPositive();
        }
        return accepted;
      }
      SocketChannel connected = host.channels().openSocketChannel();
      boolean _ = connected.connect(other.address().socket());
      int _ = connected.write(ByteBuffer.wrap(RawPeer.words(presented)));
      return connected;
    }
  }
}
