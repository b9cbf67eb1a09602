package dev.tutti.store.tcp;

import java.io.IOException;
import java.net.SocketOption;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;

/** Keeps idle connections from being dropped on their way. */
final class KeepAlive {
  /*
   * Proxies, firewalls and NAT gateways drop a connection that has been silent for some minutes;
   * the system's own first probe comes only after two hours.
   */
  private static final int IDLE_SECONDS = 60;

  /**
   * Looked up by name, because a small runtime image may lack the module jdk.net, which has the
   * option.
   */
  private static final String IDLE = "TCP_KEEPIDLE";

  private KeepAlive() {}

  /**
   * Makes the system send probes after a minute of silence, to show that a connection is still
   * used.
   */
  static void set(SocketChannel channel) throws IOException {
    channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
    for (SocketOption<?> option : channel.supportedOptions()) {
      if (option.name().equals(IDLE) && option.type() == Integer.class) {
        @SuppressWarnings("unchecked") // its type was checked
        SocketOption<Integer> idle = (SocketOption<Integer>) option;
        channel.setOption(idle, IDLE_SECONDS);
      }
    }
  }
}
