package dev.tutti.store.tcp;

import dev.tutti.StoreConnectionException;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** Finds ports for tests that must know a port before there is a server. */
final class FreePort {
  /*
   * A process that is being started has copies of all sockets until it runs its program, so a port
   * may be in use for a moment after its socket was closed. That does no harm to the socket below,
   * which does not listen and allows others on its port.
   */
  private static final long FREED_NANOS = TimeUnit.SECONDS.toNanos(60);

  private FreePort() {}

  /** Returns a port on which nobody listens, and which the system does not assign by itself. */
  static int find() throws IOException {
    while (true) {
      int port = ThreadLocalRandom.current().nextInt(15_000, 32_000);
      try (SocketChannel socket = SocketChannel.open()) {
        socket.setOption(StandardSocketOptions.SO_REUSEADDR, true);
        socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
        return port;
      } catch (BindException e) {
        // The port is taken.
      }
    }
  }

  /** Starts a server on a port on which another socket listened a moment ago. */
  static TcpStoreServer serveAgain(int port) {
    return serveAgain(() -> new TcpStoreServer(port));
  }

  /** Starts a server in the same way. */
  static TcpStoreServer serveAgain(Supplier<TcpStoreServer> start) {
    long deadline = System.nanoTime() + FREED_NANOS;
    while (true) {
      try {
        return start.get();
      } catch (StoreConnectionException e) {
        if (System.nanoTime() - deadline > 0) {
          throw e;
        }
        Thread.onSpinWait();
      }
    }
  }
}
