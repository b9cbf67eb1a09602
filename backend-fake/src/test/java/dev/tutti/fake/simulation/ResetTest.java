package dev.tutti.fake.simulation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.SelectorProvider;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests what a reset loses, over simulated connections and over those of Linux. */
@Isolated("threads of other tests in shared locks would bring in real time")
class ResetTest {
  private static final int SEEDS = 30;
  private static final int WINDOW = 4096;
  private static final int MUCH = 1 << 18;
  private static final int FEW = 50;

  /** A way to connect, and to let all that was sent arrive. */
  private interface Net {
    SelectorProvider client();

    SelectorProvider server();

    InetAddress address();

    void settle();
  }

  private static final class Linux implements Net {
    @Override
    public SelectorProvider client() {
      return SelectorProvider.provider();
    }

    @Override
    public SelectorProvider server() {
      return SelectorProvider.provider();
    }

    @Override
    public InetAddress address() {
      return InetAddress.getLoopbackAddress();
    }

    @Override
    public void settle() {
      // A call that sends over the loopback also receives.
    }
  }

  private static final class Simulated implements Net {
    private final SimulatedHost here = SimulatedHost.current();
    private final SimulatedHost there = here.newHost("server");

    @Override
    public SelectorProvider client() {
      return here.channels();
    }

    @Override
    public SelectorProvider server() {
      return there.channels();
    }

    @Override
    public InetAddress address() {
      return there.address();
    }

    @Override
    public void settle() {
      SimulatedWorld.sleep(Duration.ofSeconds(1));
    }
  }

  private record Ends(SocketChannel client, SocketChannel server) implements AutoCloseable {
    static Ends of(Net net) throws IOException {
      try (ServerSocketChannel listener = net.server().openServerSocketChannel()) {
        ServerSocketChannel _ = listener.bind(new InetSocketAddress(net.address(), 0));
        SocketChannel client = net.client().openSocketChannel();
        client.setOption(StandardSocketOptions.SO_RCVBUF, WINDOW);
        boolean _ = client.connect(listener.getLocalAddress());
        return new Ends(client, listener.accept());
      }
    }

    @Override
    public void close() throws IOException {
      client.close();
      server.close();
    }
  }

  private static void write(SocketChannel to, int count) throws IOException {
    int _ = to.write(ByteBuffer.allocate(count));
  }

  private static void keepsWhatHasArrived(Net net) throws IOException {
    try (Ends ends = Ends.of(net)) {
      write(ends.client(), 10);
      write(ends.server(), 7);
      net.settle();
      ends.server().close();
      net.settle();
      ByteBuffer got = ByteBuffer.allocate(100);
      while (got.position() < 7) {
        assertThat(ends.client().read(got)).isPositive();
      }
      assertThatThrownBy(() -> ends.client().read(got))
          .isInstanceOf(SocketException.class)
          .hasMessage("Connection reset");
    }
  }

  /** Closes an end that still sends; returns whether the other end, which writes, loses bytes. */
  private static boolean losesWhatIsOnItsWay(Net net) throws IOException {
    try (Ends ends = Ends.of(net)) {
      ends.server().configureBlocking(false);
      int sent = 0;
      for (int count = 1; count > 0; sent += count) {
        count = ends.server().write(ByteBuffer.allocate(MUCH));
      }
      ends.server().close();
      write(ends.client(), 1);
      int got = 0;
      try {
        for (int count = 0; count >= 0; count = ends.client().read(ByteBuffer.allocate(MUCH))) {
          got += count;
        }
        assertThat(got).isEqualTo(sent);
        return false;
      } catch (SocketException e) {
        assertThat(e).hasMessage("Connection reset");
        return got < sent;
      }
    }
  }

  private static void nothingIsLostIfTheEndThatSendsReadsToTheEnd(Net net, Starter starter)
      throws IOException {
    Ends ends = Ends.of(net);
    Thread _ = starter.start(() -> sendAndReadToTheEnd(ends.server()));
    try (SocketChannel client = ends.client()) {
      int got = 0;
      int count = 0;
      for (int reads = 0; count >= 0; reads++) {
        if (reads < FEW) {
          write(client, 1);
        }
        count = client.read(ByteBuffer.allocate(WINDOW));
        got += Math.max(count, 0);
      }
      assertThat(got).isEqualTo(MUCH);
    }
  }

  private interface Starter {
    Thread start(Runnable body);
  }

  private static void sendAndReadToTheEnd(SocketChannel channel) {
    try (channel) {
      write(channel, MUCH);
      SocketChannel _ = channel.shutdownOutput();
      ByteBuffer in = ByteBuffer.allocate(WINDOW);
      while (channel.read(in) >= 0) {
        in.clear();
      }
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  @EnabledOnOs(OS.LINUX)
  void linuxLosesOnlyWhatIsOnItsWay() throws Exception {
    keepsWhatHasArrived(new Linux());
    assertThat(losesWhatIsOnItsWay(new Linux())).isTrue();
    nothingIsLostIfTheEndThatSendsReadsToTheEnd(
        new Linux(), body -> Thread.ofPlatform().daemon().start(body));
  }

  @Test
  void simulatedConnectionsDoTheSame() throws Throwable {
    Set<Boolean> losses = new HashSet<>();
    for (long seed = 0; seed < SEEDS; seed++) {
      var _ =
          Simulation.run(
              seed,
              () -> {
                keepsWhatHasArrived(new Simulated());
                losses.add(losesWhatIsOnItsWay(new Simulated()));
                nothingIsLostIfTheEndThatSendsReadsToTheEnd(
                    new Simulated(), body -> Simulation.start("sender", body));
              });
    }
    assertThat(losses).contains(true);
  }
}
