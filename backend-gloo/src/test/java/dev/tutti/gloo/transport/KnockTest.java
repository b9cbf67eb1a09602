package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedHost;
import dev.tutti.fake.simulation.Simulation;
import dev.tutti.gloo.TestContexts;
import dev.tutti.gloo.transport.connect.PeerAddress;
import dev.tutti.gloo.transport.connect.Protection;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.PeerLostException;
import dev.tutti.store.HashStore;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.time.Duration;
import org.junit.jupiter.api.parallel.Isolated;

/** Lets rank 0 knock at rank 1, a server socket of a simulated host, which should then connect. */
@Isolated("threads of other tests in shared locks would bring in real time")
class KnockTest implements Simulated.Fixture {
  private static final long KNOCK = Listener.knock(0);
  private static final long SEQUENCE = 17;
  private static final int TAG = 3;

  private final MemorySegment in = RingRanks.filled(1, 0);
  private SimulatedHost host;
  private TestOperation receive;
  private ServerSocketChannel peer;
  private Transport transport;
  private InetSocketAddress address;

  @Override
  public void open() throws IOException {
    host = SimulatedHost.current();
    SimulatedHost other = host.newHost("rank 1");
    // It has a long deadline, so that a receive that misses its peer's end is not over in time.
    receive = new TestOperation(host.time(), Duration.ofHours(1));
    peer = listen(other);
    BackendContext context =
        TestContexts.of(
            0,
            2,
            new HashStore(Duration.ofMinutes(1), host.time()),
            Duration.ofSeconds(60),
            (cause, failedRank) -> {},
            host.time());
    transport = new Transport(context, Protection.of(context.settings()), host.channels());
    ServerSocketChannel server = listen(host);
    address = (InetSocketAddress) server.getLocalAddress();
    transport.pairs.listen(server);
    transport.pairs.expect(
        1,
        new PeerAddress((InetSocketAddress) peer.getLocalAddress(), -1, true, 0, 0),
        SEQUENCE,
        false);
    transport.progress.start(0);
  }

  @Override
  public void close() throws IOException {
    transport.close();
    peer.close();
  }

  private static ServerSocketChannel listen(SimulatedHost host) throws IOException {
    return host.channels()
        .openServerSocketChannel()
        .bind(new InetSocketAddress(host.address(), 0), 16);
  }

  private void receive(boolean waits) {
    RawMessages messages = new RawMessages(transport);
    messages.receive(receive, 1, TAG, in, 1);
    if (waits) {
      Thread _ =
          host.time().start("waiting", () -> messages.await(receive, receive.deadlineNanos()));
    }
  }

  private void hearKnock() throws IOException {
    try (RawSocket knock = new RawSocket(peer.accept())) {
      assertThat(knock.read(8)).isEqualTo(RawPeer.words(KNOCK));
      assertThat(knock.readAll()).isEmpty();
    }
  }

  @Simulated
  void aWaitingThreadMissesAPeerThatLeavesWithoutLookingAtAKnock() throws Exception {
    assertMissed(true);
  }

  @Simulated
  void theDaemonMissesAPeerThatLeavesWithoutLookingAtAKnock() throws Exception {
    assertMissed(false);
  }

  private void assertMissed(boolean waits) throws Exception {
    receive(waits);
    hearKnock();
    peer.close();
    assertThat(receive.parkUntilDone(receive.deadlineNanos())).isTrue();
    assertThat(receive.cause())
        .isInstanceOf(PeerLostException.class)
        .hasMessageContaining("rank 1 cannot be reached");
    // Rank 0 knocks again after a second.
    assertThat(Simulation.now().toSeconds()).isEqualTo(1);
  }

  @Simulated
  void aRankKnocksAgainUntilItIsConnected() throws Exception {
    receive(false);
    hearKnock();
    hearKnock();
    hearKnock();
    try (RawSocket socket = RawSocket.connect(host.channels(), address)) {
      socket.send(RawPeer.words(SEQUENCE));
      socket.send(RawPeer.words(48, Header.NOTIFY_SEND_READY, TAG, 0, 1, 0));
      socket.send(RawPeer.words(49, Header.SEND_UNBOUND_BUFFER, TAG, 0, 1, 0)).send((byte) 9);
      assertThat(receive.parkUntilDone(receive.deadlineNanos())).isTrue();
      assertThat(receive.cause()).isNull();
      assertThat(in.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 9);
      transport.progress.lock.lock();
      try {
        transport.pairs.retry();
        assertThat(transport.pairs.hasRetries()).isFalse();
      } finally {
        transport.progress.lock.unlock();
      }
    }
  }
}
