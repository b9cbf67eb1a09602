package dev.tutti.store.net;

import dev.tutti.spi.HostPort;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;

/**
 * A connection of a socket to itself: the system gives a client that connects to a free port of
 * this host that same port now and then, if it is one of those that clients get.
 */
public final class SelfConnection {
  private SelfConnection() {}

  /**
   * Refuses a connection of a socket to itself, and frees the port at once; an ordinary close would
   * keep it from being bound for a minute.
   *
   * @param channel a connected channel; closed if it is connected to itself
   * @throws ConnectException if the channel is connected to itself
   * @throws IOException if the channel is closed
   */
  public static void refuse(SocketChannel channel) throws IOException {
    if (channel.getRemoteAddress() instanceof InetSocketAddress remote
        && remote.equals(channel.getLocalAddress())) {
      channel.setOption(StandardSocketOptions.SO_LINGER, 0);
      channel.close();
      throw new ConnectException("no process listens on " + HostPort.text(remote));
    }
  }
}
