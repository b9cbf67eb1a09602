package dev.tutti.store.tcp;

import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.concurrent.ThreadLocalRandom;

/** Finds ports for tests that must know a port before there is a server. */
final class FreePort {
  private FreePort() {}

  /** Returns a port on which nobody listens, and which the system does not assign by itself. */
  static int find() throws IOException {
    while (true) {
      int port = ThreadLocalRandom.current().nextInt(15_000, 32_000);
      try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
        return socket.getLocalPort();
      } catch (BindException e) {
        // The port is taken.
      }
    }
  }
}
