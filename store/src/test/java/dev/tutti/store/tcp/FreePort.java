package dev.tutti.store.tcp;

import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;
import java.util.concurrent.ThreadLocalRandom;

/** Finds ports for tests that must know a port before there is a server. */
final class FreePort {
  private FreePort() {}

  /** Returns a port on which nobody listens, and which the system does not assign by itself. */
  static int find() throws IOException {
    while (true) {
      int port = ThreadLocalRandom.current().nextInt(15_000, 32_000);
      // This does not listen, so that a copy in a process being started keeps nobody from the port.
      try (SocketChannel socket = SocketChannel.open()) {
        socket.setOption(StandardSocketOptions.SO_REUSEADDR, true);
        socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
        return port;
      } catch (BindException e) {
        // The port is taken.
      }
    }
  }
}
