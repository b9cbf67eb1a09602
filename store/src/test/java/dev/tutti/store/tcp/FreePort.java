package dev.tutti.store.tcp;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;
import java.util.concurrent.ThreadLocalRandom;

/** Finds ports for tests that must know a port before there is a server. */
final class FreePort {
  private FreePort() {}

  /** Returns a port on which nobody listens, and which the system does not assign by itself. */
  static int find() {
    return ThreadLocalRandom.current()
        .ints(15_000, 32_000)
        .limit(100)
        .filter(FreePort::isFree)
        .findFirst()
        .orElseThrow();
  }

  private static boolean isFree(int port) {
    // This does not listen, so that a copy in a process being started keeps nobody from the port.
    try (SocketChannel socket = SocketChannel.open()) {
      socket.setOption(StandardSocketOptions.SO_REUSEADDR, true);
      socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
      return true;
    } catch (IOException e) {
      return false;
    }
  }
}
