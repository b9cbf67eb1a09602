package dev.tutti.store.net;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.store.ManualTime;
import dev.tutti.store.ManualTime.Passing;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.SocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class ReleasedPortTest {
  private final ManualTime time = new ManualTime();

  @Test
  void aPortThatIsReleasedMeanwhileIsBound() throws IOException {
    AtomicInteger tries = new AtomicInteger();
    ServerSocket held = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
    try (ServerSocketChannel next = ServerSocketChannel.open()) {
      SocketAddress address = held.getLocalSocketAddress();
      ReleasedPort.bind(
          time,
          () -> {
            if (tries.incrementAndGet() == 3) {
              held.close();
            }
            return next.bind(address);
          });
      assertThat(tries).hasValueGreaterThanOrEqualTo(3);
      assertThat(next.getLocalAddress()).isEqualTo(address);
    } finally {
      held.close();
    }
  }

  @Test
  void aPortThatStaysInUseIsRefused() throws IOException {
    time.pass(Passing.PARKS);
    long start = time.nanoTime();
    try (ServerSocket held = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        ServerSocketChannel next = ServerSocketChannel.open()) {
      assertThatThrownBy(
              () -> ReleasedPort.bind(time, () -> next.bind(held.getLocalSocketAddress())))
          .isInstanceOf(BindException.class)
          .hasMessageContaining("Address already in use");
      assertThat(Duration.ofNanos(time.nanoTime() - start))
          .isBetween(Duration.ofSeconds(2), Duration.ofMillis(2100));
    }
  }

  /** 192.0.2.1 is reserved for documentation, so no host has it. */
  @Test
  void otherErrorsAreNotTriedAgain() throws IOException {
    try (ServerSocketChannel next = ServerSocketChannel.open()) {
      AtomicInteger tries = new AtomicInteger();
      assertThatThrownBy(
              () ->
                  ReleasedPort.bind(
                      time,
                      () -> {
                        tries.incrementAndGet();
                        return next.bind(new InetSocketAddress("192.0.2.1", 0));
                      }))
          .isInstanceOf(BindException.class);
      assertThat(tries).hasValue(1);
    }
  }
}
