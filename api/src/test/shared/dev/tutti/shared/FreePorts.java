package dev.tutti.shared;

import java.io.IOException;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.IntStream;

/** Finds ports for tests that need a port before there is a server. */
public final class FreePorts {
  private FreePorts() {}

  /** Returns a port on which nobody listens, and which the system does not assign by itself. */
  public static int one() {
    return consecutive(1);
  }

  /**
   * Returns the first of some consecutive ports that are free for TCP and UDP.
   *
   * @param count how many
   * @throws java.util.NoSuchElementException if a hundred places are not free
   */
  public static int consecutive(int count) {
    return ThreadLocalRandom.current()
        .ints(100, 12_000, 30_000)
        .filter(first -> IntStream.range(first, first + count).allMatch(FreePorts::isFree))
        .findFirst()
        .orElseThrow();
  }

  private static boolean isFree(int port) {
    InetAddress loopback = InetAddress.getLoopbackAddress();
    // This does not listen, so that a copy in a process being started keeps nobody from the port.
    try (SocketChannel tcp = SocketChannel.open();
        DatagramSocket _ = new DatagramSocket(port, loopback)) {
      tcp.setOption(StandardSocketOptions.SO_REUSEADDR, true);
      tcp.bind(new InetSocketAddress(loopback, port));
      return true;
    } catch (IOException e) {
      return false;
    }
  }
}
