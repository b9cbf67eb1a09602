package dev.tutti.cli.run;

import java.io.IOException;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.SocketException;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Finds ports that are free now, among those that the system gives to nobody who asks for any port.
 */
public final class FreePorts {
  private FreePorts() {}

  /** Returns a port that is free for TCP and UDP. */
  static int one() throws IOException {
    InetAddress loopback = InetAddress.getLoopbackAddress();
    for (int tries = 0; ; tries++) {
      int port = any();
      try (ServerSocket _ = new ServerSocket(port, 1, loopback);
          DatagramSocket _ = new DatagramSocket(port, loopback)) {
        return port;
      } catch (SocketException e) {
        if (tries == 100) {
          throw e;
        }
      }
    }
  }

  private static int any() {
    return ThreadLocalRandom.current().nextInt(12_000, 30_000);
  }

  /** Returns the first of five consecutive UDP ports, for a member of a cluster. */
  public static int five() throws IOException {
    return consecutive(5);
  }

  /** Returns the first of some consecutive UDP ports. */
  public static int consecutive(int count) throws IOException {
    for (int tries = 0; ; tries++) {
      int first = any();
      try {
        for (int port = first; port < first + count; port++) {
          new DatagramSocket(port, InetAddress.getLoopbackAddress()).close();
        }
        return first;
      } catch (SocketException e) {
        if (tries == 100) {
          throw e;
        }
      }
    }
  }
}
