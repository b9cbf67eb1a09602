package dev.tutti.store.net;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.spi.Time;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.SocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class ReleasedPortTest {
  @Test
  void aPortThatIsReleasedMeanwhileIsBound() throws IOException {
    while (!bindsAPortThatIsReleased()) {}
  }

  /** Returns false if this thread stood still until it was too late for a third try. */
  private static boolean bindsAPortThatIsReleased() throws IOException {
    ServerSocket held = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
    SocketAddress address = held.getLocalSocketAddress();
    AtomicInteger tries = new AtomicInteger();
    long start = System.nanoTime();
    try (ServerSocketChannel next = ServerSocketChannel.open()) {
      ReleasedPort.bind(
          Time.SYSTEM,
          () -> {
            if (tries.incrementAndGet() == 3) {
              held.close();
            }
            return next.bind(address);
          });
      assertThat(tries).hasValueGreaterThanOrEqualTo(3);
      assertThat(next.getLocalAddress()).isEqualTo(address);
      return true;
    } catch (BindException e) {
      if (tries.get() >= 3 || System.nanoTime() - start < TimeUnit.SECONDS.toNanos(2)) {
        throw e;
      }
      return false;
    } finally {
      held.close();
    }
  }

  @Test
  void aPortThatStaysInUseIsRefused() throws IOException {
    try (ServerSocket held = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        ServerSocketChannel next = ServerSocketChannel.open()) {
      assertThatThrownBy(
              () -> ReleasedPort.bind(Time.SYSTEM, () -> next.bind(held.getLocalSocketAddress())))
          .isInstanceOf(BindException.class)
          .hasMessageContaining("Address already in use");
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
                      Time.SYSTEM,
                      () -> {
                        tries.incrementAndGet();
                        return next.bind(new InetSocketAddress("192.0.2.1", 0));
                      }))
          .isInstanceOf(BindException.class);
      assertThat(tries).hasValue(1);
    }
  }
}
