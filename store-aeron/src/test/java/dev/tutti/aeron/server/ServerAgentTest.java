package dev.tutti.aeron.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.aeron.driver.Channels;
import dev.tutti.aeron.driver.Doorbell;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.aeron.wire.Control;
import dev.tutti.aeron.wire.FrameWriter;
import dev.tutti.aeron.wire.Handshake;
import dev.tutti.aeron.wire.Protocol;
import dev.tutti.aeron.wire.Timing;
import dev.tutti.spi.Time;
import dev.tutti.store.net.LimitedLog;
import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests which clients the server's thread notifies that it ends, and which it drops. */
@Timeout(300)
class ServerAgentTest {
  private static final int ENDED = -1;
  private static final Timing TIMING = Timing.of(Duration.ofSeconds(5));

  @TempDir private Path directory;

  private final LimitedLog log = new LimitedLog(System.getLogger("test"), Time.SYSTEM);
  private EmbeddedDriver driver;
  private Aeron aeron;
  private ServerAgent agent;
  private final List<Control> peers = new ArrayList<>();

  @BeforeEach
  void start() throws IOException {
    driver = EmbeddedDriver.start(directory, "", TIMING, 4);
    aeron = EmbeddedDriver.connect(driver.path(), TIMING);
    agent = new ServerAgent("server", Doorbell.make(aeron), Long.MAX_VALUE, false, log, false);
  }

  @AfterEach
  void end() {
    peers.forEach(Control::close);
    aeron.close();
    driver.close();
  }

  /**
   * Returns a client with a control connection and streams of the given number and the next one.
   */
  private ServerClient client(int stream, Caller.Requests requests) throws IOException {
    try (ServerSocketChannel listener = ServerSocketChannel.open()) {
      listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      SocketChannel there = SocketChannel.open(listener.getLocalAddress());
      peers.add(new Control(there.socket(), TIMING));
      return new ServerClient(
          new Control(listener.accept().socket(), TIMING),
          stream,
          aeron.addSubscription(Channels.IPC, stream),
          aeron.addExclusivePublication(Channels.IPC, stream + 1),
          Doorbell.make(aeron),
          requests);
    }
  }

  @Test
  void whoComesWhileTheServerEndsIsTold() throws Exception {
    agent.stop();
    assertThat(agent.add(client(10, agent.commands()))).isTrue();
    assertThat(agent.add(client(20, agent.commands()))).isTrue();
    agent.run();
    ServerClient late = client(30, agent.commands());
    assertThat(agent.add(late)).isFalse();
    assertThat(peers.get(0).await()).isEqualTo(Handshake.GOODBYE);
    assertThat(peers.get(1).await()).isEqualTo(Handshake.GOODBYE);
    late.close();
  }

  @Test
  void aClientForWhoseRequestThereIsNoMemoryIsDroppedAlone() throws Exception {
    Thread thread = EmbeddedDriver.daemon("agent", agent);
    agent.add(
        client(
            10,
            (caller, code, call, body) -> {
              throw new OutOfMemoryError("played");
            }));
    agent.add(client(20, agent.commands()));
    thread.start();
    ask(10);
    assertThat(peers.get(0).await()).isEqualTo(ENDED);
    assertThat(thread.isAlive()).isTrue();
    agent.stop();
    thread.join();
    assertThat(peers.get(1).await()).isEqualTo(Handshake.GOODBYE);
  }

  @Test
  void allClientsAreToldWhereTheThreadEndsByAnError() throws Exception {
    Thread thread = EmbeddedDriver.daemon("agent", agent);
    agent.add(
        client(
            10,
            (caller, code, call, body) -> {
              throw new StackOverflowError("played");
            }));
    agent.add(client(20, agent.commands()));
    thread.start();
    ask(10);
    assertThat(peers.get(0).await()).isEqualTo(Handshake.GOODBYE);
    assertThat(peers.get(1).await()).isEqualTo(Handshake.GOODBYE);
    thread.join();
    assertThat(agent.execute(() -> {})).isFalse();
  }

  @Test
  void theEndOfTheThreadThatHearsClientsEndsTheServer() throws Exception {
    Thread thread = EmbeddedDriver.daemon("agent", agent);
    agent.add(client(10, agent.commands()));
    thread.start();
    agent.fail(new IOException("played"));
    assertThat(peers.get(0).await()).isEqualTo(Handshake.GOODBYE);
    thread.join();
  }

  @Test
  void aClientThatSendsNonsenseIsDroppedAlsoWhileOthersHaveWork() throws Exception {
    Thread thread = EmbeddedDriver.daemon("agent", agent);
    try (ExclusivePublication endless = aeron.addExclusivePublication(Channels.IPC, 10);
        ExclusivePublication nonsense = aeron.addExclusivePublication(Channels.IPC, 20)) {
      FrameWriter writer = new FrameWriter(endless, 10);
      UnsafeBuffer body = new UnsafeBuffer(new byte[1]);
      agent.add(client(10, (caller, code, call, in) -> send(writer, Protocol.COUNT, body)));
      agent.add(client(20, agent.commands()));
      send(writer, Protocol.COUNT, body);
      send(new FrameWriter(nonsense, 20), 9999, body);
      thread.start();
      long deadline = System.nanoTime() + Duration.ofMinutes(2).toNanos();
      assertThatThrownBy(() -> peers.get(1).readByte(deadline)).isInstanceOf(EOFException.class);
    } finally {
      agent.stop();
      thread.join();
    }
  }

  @Test
  void whoSaysGoodbyeLeavesNoWill() throws Exception {
    Thread thread = EmbeddedDriver.daemon("agent", agent);
    ServerClient left = client(10, agent.commands());
    ServerClient lost = client(20, agent.commands());
    left.wills.put(1L, new Caller.Will("left/", new byte[1]));
    lost.wills.put(1L, new Caller.Will("lost/", new byte[1]));
    agent.add(left);
    agent.add(lost);
    peers.get(0).say(Handshake.GOODBYE);
    peers.get(1).close();
    thread.start();
    assertThat(peers.get(0).await()).isEqualTo(ENDED);
    while (keys().isEmpty()) {
      Thread.onSpinWait();
    }
    assertThat(keys()).containsExactly("lost/1");
    agent.stop();
    thread.join();
  }

  private List<String> keys() throws Exception {
    CompletableFuture<List<String>> keys = new CompletableFuture<>();
    assertThat(agent.execute(() -> keys.complete(List.copyOf(agent.commands().table().keys()))))
        .isTrue();
    return keys.get(60, TimeUnit.SECONDS);
  }

  private static void send(FrameWriter writer, int code, UnsafeBuffer body) {
    while (writer.write(code, 1, body, 0, 0) >= 0) {
      Thread.onSpinWait();
    }
  }

  private void ask(int stream) {
    try (ExclusivePublication requests = aeron.addExclusivePublication(Channels.IPC, stream)) {
      FrameWriter writer = new FrameWriter(requests, stream);
      send(writer, Protocol.COUNT, new UnsafeBuffer(new byte[1]));
      agent.wake();
      while (requests.isConnected() && requests.position() == 0) {
        Thread.onSpinWait();
      }
    }
  }
}
