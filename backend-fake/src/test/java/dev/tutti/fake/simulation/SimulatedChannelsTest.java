package dev.tutti.fake.simulation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.spi.Time;
import java.io.IOException;
import java.net.BindException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests the channels of simulated hosts. */
@Isolated("threads of other tests in shared locks would bring in real time")
class SimulatedChannelsTest {
  private static final int PORT = 29500;
  private static final Duration SECOND = Duration.ofSeconds(1);

  /** A connection between two hosts, both ends of which block. */
  private record Connected(
      SimulatedHost here, SimulatedHost there, SocketChannel client, SocketChannel server)
      implements AutoCloseable {
    static Connected make() throws IOException {
      SimulatedHost here = SimulatedHost.current();
      SimulatedHost there = here.newHost("server");
      try (ServerSocketChannel listener = listen(there)) {
        SocketChannel client = connect(here, there.address());
        return new Connected(here, there, client, listener.accept());
      }
    }

    @Override
    public void close() throws IOException {
      client.close();
      server.close();
    }
  }

  private static ServerSocketChannel listen(SimulatedHost host) throws IOException {
    return host.channels().openServerSocketChannel().bind(new InetSocketAddress(PORT));
  }

  private static SocketChannel connect(SimulatedHost host, InetAddress to) throws IOException {
    SocketChannel channel = host.channels().openSocketChannel();
    boolean _ = channel.connect(new InetSocketAddress(to, PORT));
    return channel;
  }

  private static Time time() {
    return Simulation.time();
  }

  @Simulated(seeds = 50)
  void bytesArriveInOrder() throws Exception {
    SplittableRandom random = new SplittableRandom(7);
    byte[] sent = new byte[300_000];
    random.nextBytes(sent);
    try (Connected both = Connected.make()) {
      both.here().slow(both.there(), 100_000_000);
      Thread sender =
          Simulation.start(
              "sender",
              () -> {
                try {
                  int count = both.client().write(ByteBuffer.wrap(sent));
                  assertThat(count).isEqualTo(sent.length);
                  both.client().shutdownOutput();
                } catch (IOException e) {
                  throw new AssertionError(e);
                }
              });
      ByteBuffer got = ByteBuffer.allocate(sent.length + 1);
      int reads = 0;
      while (both.server().read(got) >= 0) {
        reads++;
      }
      assertThat(got.flip()).isEqualTo(ByteBuffer.wrap(sent));
      assertThat(reads).isGreaterThan(1);
      assertThat(time().join(sender, 1)).isTrue();
      assertThat(Simulation.now()).isGreaterThan(Duration.ofMillis(3));
    }
  }

  @Simulated(seeds = 50)
  void aFullBufferTakesNoMoreUntilTheOtherEndReads() throws Exception {
    try (Connected both = Connected.make();
        Selector selector = both.here().channels().openSelector()) {
      both.client().configureBlocking(false);
      ByteBuffer much = ByteBuffer.allocate(1 << 20);
      while (both.client().write(much) > 0) {
        assertThat(much.hasRemaining()).isTrue();
      }
      SelectionKey _ = both.client().register(selector, SelectionKey.OP_WRITE);
      assertThat(time().select(selector, _ -> {}, SECOND.toNanos())).isZero();
      Thread _ = Simulation.start("reader", () -> readAll(both.server(), much.position()));
      assertThat(time().select(selector, _ -> {}, SECOND.toNanos())).isOne();
      assertThat(both.client().write(much)).isPositive();
    }
  }

  private static void readAll(SocketChannel from, int count) {
    ByteBuffer into = ByteBuffer.allocate(count);
    try {
      while (into.hasRemaining()) {
        assertThat(from.read(into)).isPositive();
      }
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Simulated
  void aPortWithoutListenerRefuses() {
    SimulatedHost there = SimulatedHost.current().newHost("server");
    assertThatThrownBy(() -> connect(SimulatedHost.current(), there.address()))
        .isInstanceOf(ConnectException.class)
        .hasMessage("Connection refused");
    assertThat(Simulation.now()).isLessThan(SECOND);
  }

  @Simulated
  void anAbsentHostAndASilentOneTimeOut() throws Exception {
    SimulatedHost here = SimulatedHost.current();
    SimulatedHost silent = here.newHost("silent");
    silent.delayConnects(Duration.ofHours(1));
    try (ServerSocketChannel _ = listen(silent)) {
      for (InetAddress address :
          new InetAddress[] {InetAddress.ofLiteral("10.9.9.9"), silent.address()}) {
        Duration start = Simulation.now();
        assertThatThrownBy(() -> connect(here, address))
            .isInstanceOf(ConnectException.class)
            .hasMessage("Connection timed out");
        assertThat(Simulation.now().minus(start)).isEqualTo(SECOND.multipliedBy(127));
      }
    }
  }

  @Simulated
  void aLateHostAnswersLate() throws Exception {
    SimulatedHost here = SimulatedHost.current();
    SimulatedHost late = here.newHost("late");
    late.delayConnects(SECOND.dividedBy(2));
    try (ServerSocketChannel _ = listen(late);
        SocketChannel channel = connect(here, late.address())) {
      assertThat(channel.isConnected()).isTrue();
      assertThat(Simulation.now()).isBetween(SECOND.dividedBy(2), SECOND);
    }
  }

  @Simulated
  void aFullBacklogMakesOthersWait() throws Exception {
    SimulatedHost here = SimulatedHost.current();
    SimulatedHost there = here.newHost("server");
    try (ServerSocketChannel listener = there.channels().openServerSocketChannel()) {
      ServerSocketChannel _ = listener.bind(new InetSocketAddress(PORT), 1);
      SocketChannel first = connect(here, there.address());
      Thread _ =
          Simulation.start(
              "accepting",
              () -> {
                SimulatedWorld.sleep(SECOND.dividedBy(2));
                try {
                  listener.accept().close();
                } catch (IOException e) {
                  throw new AssertionError(e);
                }
              });
      SocketChannel second = connect(here, there.address());
      assertThat(Simulation.now()).isGreaterThan(SECOND);
      first.close();
      second.close();
    }
  }

  @Simulated(seeds = 20)
  void aCloseWithUnreadBytesResets() throws Exception {
    try (Connected both = Connected.make()) {
      both.client().write(ByteBuffer.allocate(10));
      SimulatedWorld.sleep(SECOND);
      both.server().close();
      SimulatedWorld.sleep(SECOND);
      assertThatThrownBy(() -> both.client().read(ByteBuffer.allocate(1)))
          .isInstanceOf(SocketException.class)
          .hasMessage("Connection reset");
    }
  }

  @Simulated(seeds = 20)
  void aWriteIsToldOnceOfAReset() throws Exception {
    try (Connected both = Connected.make()) {
      both.client().write(ByteBuffer.allocate(10));
      SimulatedWorld.sleep(SECOND);
      both.server().close();
      SimulatedWorld.sleep(SECOND);
      assertThatThrownBy(() -> both.client().write(ByteBuffer.allocate(1)))
          .hasMessage("Connection reset by peer");
      assertThatThrownBy(() -> both.client().write(ByteBuffer.allocate(1)))
          .hasMessage("Broken pipe");
      assertThat(both.client().read(ByteBuffer.allocate(1))).isEqualTo(-1);
    }
  }

  @Simulated(seeds = 20)
  void aSelectedChannelEndsItsOutputBeforeAReset() throws Exception {
    try (Connected both = Connected.make();
        Selector selector = both.there().channels().openSelector()) {
      both.client().write(ByteBuffer.allocate(10));
      both.server().configureBlocking(false);
      SelectionKey _ = both.server().register(selector, SelectionKey.OP_READ);
      SimulatedWorld.sleep(SECOND);
      both.server().close();
      SimulatedWorld.sleep(SECOND);
      assertThatThrownBy(() -> both.client().write(ByteBuffer.allocate(1)))
          .isInstanceOf(IOException.class);
    }
  }

  @Simulated(seeds = 20)
  void bytesForAClosedEndAreAnsweredByAReset() throws Exception {
    try (Connected both = Connected.make()) {
      both.server().close();
      ByteBuffer one = ByteBuffer.allocate(1);
      assertThat(both.client().read(one)).isEqualTo(-1);
      assertThat(both.client().write(one)).isOne();
      SimulatedWorld.sleep(SECOND);
      assertThatThrownBy(() -> both.client().write(one.clear())).hasMessage("Broken pipe");
    }
  }

  @Simulated(seeds = 20)
  void aLostHostLeavesConnectionsHalfOpen() throws Exception {
    try (Connected both = Connected.make()) {
      both.there().lose();
      both.client().write(ByteBuffer.allocate(1));
      assertThatThrownBy(() -> both.client().read(ByteBuffer.allocate(1)))
          .isInstanceOf(SocketException.class)
          .hasMessage("Connection timed out");
      assertThat(Simulation.now()).isGreaterThan(Duration.ofMinutes(15));
    }
  }

  @Simulated(seeds = 20)
  void aCrashClosesTheConnections() throws Exception {
    try (Connected both = Connected.make()) {
      assertThat(both.there().openChannels()).isOne();
      both.there().crash();
      assertThat(both.there().openChannels()).isZero();
      assertThat(both.client().read(ByteBuffer.allocate(1))).isEqualTo(-1);
      both.there().restart("next");
      try (ServerSocketChannel _ = listen(both.there());
          SocketChannel again = connect(both.here(), both.there().address())) {
        assertThat(again.isConnected()).isTrue();
      }
    }
  }

  @Simulated(seeds = 20)
  void whatWasLostArrivesAfterThePartition() throws Exception {
    try (Connected both = Connected.make()) {
      both.here().partition(both.there(), true);
      both.client().write(ByteBuffer.allocate(200));
      Thread _ =
          Simulation.start(
              "healing",
              () -> {
                SimulatedWorld.sleep(SECOND.multipliedBy(10));
                both.here().partition(both.there(), false);
              });
      readAll(both.server(), 200);
      assertThat(Simulation.now()).isGreaterThan(SECOND.multipliedBy(10));
    }
  }

  @Simulated
  void allConnectionsOfAHostCanBeReset() throws Exception {
    try (Connected both = Connected.make()) {
      both.here().resetConnections();
      assertThatThrownBy(() -> both.client().read(ByteBuffer.allocate(1)))
          .hasMessage("Connection reset");
      assertThatThrownBy(() -> both.server().read(ByteBuffer.allocate(1)))
          .hasMessage("Connection reset");
    }
  }

  @Simulated
  void aPortIsTakenByItsListenerAndByAClientWithoutReuse() throws Exception {
    SimulatedHost here = SimulatedHost.current();
    try (ServerSocketChannel _ = listen(here)) {
      assertThatThrownBy(() -> listen(here))
          .isInstanceOf(BindException.class)
          .hasMessage("Address already in use");
    }
    try (SocketChannel client = here.channels().openSocketChannel()) {
      client.bind(new InetSocketAddress(PORT));
      assertThatThrownBy(() -> listen(here)).isInstanceOf(BindException.class);
    }
    listen(here).close();
    assertThatThrownBy(
            () ->
                here.channels()
                    .openServerSocketChannel()
                    .bind(new InetSocketAddress(InetAddress.ofLiteral("10.9.9.9"), PORT)))
        .hasMessage("Cannot assign requested address");
  }

  @Simulated(seeds = 20)
  void aClientThatClosesFirstKeepsItsPortForAMinute() throws Exception {
    SimulatedHost here = SimulatedHost.current();
    here.usePorts(40000, 1);
    try (Connected both = Connected.make()) {
      both.client().close();
      assertThatThrownBy(() -> connect(here, both.there().address()))
          .isInstanceOf(BindException.class);
      SimulatedWorld.sleep(SECOND.multipliedBy(60));
      assertThatThrownBy(() -> connect(here, both.there().address()))
          .hasMessage("Connection refused");
    }
  }

  @Simulated(seeds = 20)
  void aClientMayConnectToItself() throws Exception {
    SimulatedHost here = SimulatedHost.current();
    here.usePorts(PORT, 1);
    try (SocketChannel self = connect(here, InetAddress.getLoopbackAddress())) {
      assertThat(self.getRemoteAddress()).isEqualTo(self.getLocalAddress());
      self.write(ByteBuffer.wrap(new byte[] {7}));
      ByteBuffer got = ByteBuffer.allocate(1);
      assertThat(self.read(got)).isOne();
      assertThat(got.get(0)).isEqualTo((byte) 7);
      // An ordinary close would keep the port for a minute.
      self.setOption(StandardSocketOptions.SO_LINGER, 0);
    }
    listen(here).close();
  }

  @Simulated(seeds = 20)
  void anInterestCountsFromTheNextSelect() throws Exception {
    try (Connected both = Connected.make();
        Selector selector = both.here().channels().openSelector()) {
      both.client().configureBlocking(false);
      SelectionKey key = both.client().register(selector, 0);
      Thread _ =
          Simulation.start(
              "changing",
              () -> {
                SimulatedWorld.sleep(SECOND);
                key.interestOps(SelectionKey.OP_WRITE);
              });
      assertThat(time().select(selector, _ -> {}, SECOND.multipliedBy(2).toNanos())).isZero();
      assertThat(Simulation.now()).isGreaterThan(SECOND.multipliedBy(2));
      assertThat(time().select(selector, _ -> {}, 0)).isOne();
      selector.wakeup();
      assertThat(time().select(selector, _ -> {}, Long.MAX_VALUE)).isOne();
    }
  }

  @Simulated(seeds = 20)
  void aCloseEndsABlockedRead() throws Exception {
    try (Connected both = Connected.make()) {
      AtomicReference<Throwable> thrown = new AtomicReference<>();
      CountDownLatch ended = new CountDownLatch(1);
      Thread _ =
          Simulation.start(
              "reading",
              () -> {
                try {
                  int _ = both.client().read(ByteBuffer.allocate(1));
                } catch (IOException e) {
                  thrown.set(e);
                }
                ended.countDown();
              });
      SimulatedWorld.sleep(SECOND);
      both.client().close();
      ended.await();
      assertThat(thrown.get()).isInstanceOf(AsynchronousCloseException.class);
    }
  }

  @Test
  void aSeedDecidesWhatTheNetworkDoes() {
    long first = hash(1);
    assertThat(hash(1)).isEqualTo(first);
    assertThat(hash(2)).isNotEqualTo(first);
  }

  private static long hash(long seed) {
    SimulatedProgram.Outcome outcome =
        SimulatedProgram.run(
            seed,
            _ -> {
              try (Connected both = Connected.make()) {
                Thread reader = Simulation.start("reader", () -> readAll(both.server(), 50_000));
                both.client().write(ByteBuffer.allocate(50_000));
                assertThat(time().join(reader, SECOND.toNanos())).isTrue();
              }
            });
    assertThat(outcome.failure()).isNull();
    return outcome.hash();
  }

  @Simulated
  void aThreadThatNeverReadsWhatItFindsReadyFails() throws IOException {
    try (Connected both = Connected.make();
        Selector selector = both.here().channels().openSelector()) {
      both.client().configureBlocking(false);
      SelectionKey _ = both.client().register(selector, SelectionKey.OP_WRITE);
      assertThatThrownBy(
              () -> {
                while (true) {
                  int _ = time().select(selector, _ -> {}, SECOND.toNanos());
                }
              })
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("no time passes between 100000 looks at ready channels: [")
          .hasMessageContaining(both.client().toString());
    }
  }
}
