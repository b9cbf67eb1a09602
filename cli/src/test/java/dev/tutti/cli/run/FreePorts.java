package dev.tutti.cli.run;

import java.io.IOException;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.SocketException;
import java.util.concurrent.ThreadLocalRandom;

/** Finds the ports of a member of a cluster. */
public final class FreePorts {
  private FreePorts() {}

  /** Returns the first of five consecutive UDP ports that are free now. */
  public static int five() throws IOException {
    for (int tries = 0; ; tries++) {
      int first = ThreadLocalRandom.current().nextInt(12_000, 30_000);
      try {
        for (int port = first; port < first + 5; port++) {
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
