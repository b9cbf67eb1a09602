package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Store;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedHost;
import dev.tutti.gloo.TestContexts;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.nio.channels.spi.SelectorProvider;
import java.time.Duration;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Timeout;

/**
 * Base class for tests in which a transport, rank 0 of 2, talks to a raw socket, over a simulated
 * network if the test is simulated, else over loopback. Either rank may connect to the other.
 */
@Timeout(300)
abstract class RawPeerScripts implements Simulated.Fixture {
  private static final Duration TIMEOUT = Duration.ofSeconds(100);

  record Failure(Throwable cause, int rank) {}

  final BlockingQueue<Failure> failures = new ArrayBlockingQueue<>(10);
  HashStore store = new HashStore();
  Time time = Time.SYSTEM;
  SelectorProvider channels = SelectorProvider.provider();
  InetAddress address = InetAddress.ofLiteral("127.0.0.1");
  private Duration spin = Duration.ofMillis(1);

  interface Script {
    void run(Transport transport, RawPeer peer) throws Exception;
  }

  @Override
  public void open() {
    SimulatedHost host = SimulatedHost.current();
    time = host.time();
    channels = host.channels();
    address = host.address();
    store = new HashStore(Store.DEFAULT_TIMEOUT, time);
    spin = Duration.ZERO;
  }

  @Override
  public void close() {
    store.close();
    assertThat(Duration.ofNanos(time.nanoTime())).as("time of the test").isLessThan(TIMEOUT);
  }

  Transport transport(int size, Duration timeout, boolean lazy) throws Exception {
    BackendContext context =
        TestContexts.of(
            0, size, store, timeout, (cause, rank) -> failures.add(new Failure(cause, rank)), time);
    return new TransportRendezvous(context, address, channels, lazy, false).connect(spin);
  }

  RawPeer peer(boolean tutti) throws IOException {
    return new RawPeer(tutti, channels, address);
  }

  /** Returns an operation with a timeout for which no test may wait. */
  TestOperation operation() {
    return new TestOperation(time, TIMEOUT);
  }

  <T> FutureTask<T> background(Callable<T> call) {
    FutureTask<T> task = new FutureTask<>(call);
    Thread _ = time.start("background", task);
    return task;
  }

  /** Returns once the transport has processed everything that the peer sent before. */
  void settle(Transport transport, RawPeer peer) throws Exception {
    TestOperation marker = operation();
    new RawMessages(transport).receive(marker, 1, 1, bytes(0), 1);
    assertThat(peer.receive()).isEqualTo(new RawPeer.Message(Header.NOTIFY_RECV_READY, 1, 1, ""));
    peer.notifySend(1, 1);
    peer.data(1, (byte) 5);
    assertThat(new RawMessages(transport).await(marker, marker.deadlineNanos())).isTrue();
  }

  void run(boolean tutti, Script script) throws Exception {
    store.deleteKey("0/0");
    store.deleteKey("0/1");
    RawPeer peer = peer(tutti);
    FutureTask<Void> joined =
        background(
            () -> {
              peer.join(store);
              return null;
            });
    // The peer closes first: the transport's close would wait for it.
    try (Transport transport = transport(2, TIMEOUT, false);
        peer) {
      joined.get();
      script.run(transport, peer);
    }
  }

  static MemorySegment bytes(int... values) {
    MemorySegment segment = Arena.ofAuto().allocate(Math.max(1, values.length));
    for (int i = 0; i < values.length; i++) {
      segment.set(ValueLayout.JAVA_BYTE, i, (byte) values[i]);
    }
    return segment.asSlice(0, values.length);
  }
}
