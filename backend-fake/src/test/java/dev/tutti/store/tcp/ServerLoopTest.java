package dev.tutti.store.tcp;

import static dev.tutti.store.tcp.RawClient.request;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedHost;
import dev.tutti.fake.simulation.Simulation;
import dev.tutti.store.JobToken;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.util.concurrent.CountDownLatch;
import java.util.function.LongConsumer;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests what errors of its thread do to a server, over a simulated network. */
@Isolated("threads of other tests in shared locks would bring in real time")
class ServerLoopTest implements Simulated.Fixture {
  private final CountDownLatch ended = new CountDownLatch(1);
  private SimulatedHost host;
  private LogCapture log;
  private ServerSocketChannel listener;
  private int port;
  private ServerLoop loop;

  @Override
  public void open() throws IOException {
    host = SimulatedHost.current();
    log = new LogCapture();
    listener =
        host.channels()
            .openServerSocketChannel()
            .bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    port = ((InetSocketAddress) listener.getLocalAddress()).getPort();
  }

  @Override
  public void close() throws InterruptedException {
    loop.stop();
    ended.await();
    assertThat(host.openChannels()).isZero();
    log.close();
  }

  private void serve(LongConsumer joined) throws IOException {
    loop =
        new ServerLoop(
            listener,
            port,
            JobToken.NONE,
            null,
            "a",
            Long.MAX_VALUE,
            host.time(),
            joined,
            ended::countDown);
    Thread _ = host.time().start("server", loop);
  }

  private RawClient greeted() throws IOException {
    return StoreWorld.greeted(port);
  }

  private static void assertServed(RawClient client) throws IOException {
    client.send(request(Wire.PING)).send("05 06 07 08").expect("05 06 07 08");
  }

  private void awaitLog(String text) {
    Simulation.until(() -> log.messages(port).stream().anyMatch(message -> message.contains(text)));
  }

  @Simulated
  void endsForGoodWhereItsThreadEnds() throws Exception {
    serve(count -> {});
    try (RawClient waiting = greeted();
        RawClient silent = RawClient.connect(host.channels(), port)) {
      assertServed(waiting);
      loop.execute(
          commands -> {
            throw new StackOverflowError("deliberate");
          });
      waiting.expectEnd();
      silent.expectEnd();
      ended.await();
      assertThat(loop.hasEnded()).isTrue();
      awaitLog("stopped: java.lang.StackOverflowError: deliberate");
      assertThatThrownBy(() -> RawClient.connect(host.channels(), port))
          .isInstanceOf(ConnectException.class);
    }
  }

  @Simulated
  void survivesTheEndOfMemory() throws Exception {
    serve(count -> {});
    try (RawClient client = greeted()) {
      assertServed(client);
      loop.execute(
          commands -> {
            throw new OutOfMemoryError("deliberate");
          });
      client.expectEnd();
      awaitLog("OutOfMemoryError: deliberate; check -Xmx");
      try (RawClient other = greeted()) {
        assertServed(other);
      }
    }
  }

  @Simulated
  void dropsAllWaitersWhenMemoryEndsDuringAChange() throws Exception {
    serve(
        count -> {
          throw new OutOfMemoryError("deliberate");
        });
    try (RawClient waits = greeted();
        RawClient idle = greeted();
        RawClient changes = greeted()) {
      waits.send(request(Wire.WAIT, 1L, "/come"));
      assertServed(waits);
      changes.send(request(Wire.ADD, Wire.INIT_KEY, 1L));
      changes.expectEnd();
      waits.expectEnd();
      awaitLog("deliberate; check -Xmx; all waiting clients are dropped too");
      assertServed(idle);
    }
  }
}
