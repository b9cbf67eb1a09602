package dev.tutti.store.tcp;

import java.io.IOException;
import java.net.SocketOption;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;

/** Keeps connections that nobody uses from being forgotten on their way. */
final class KeepAlive {
  /*
   * Proxies, firewalls and translators of addresses forget a connection that was silent for some
   * minutes; the system's own first probe comes after two hours.
   */
  private static final int IDLE_SECONDS = 60;

  /** By name, as a small runtime may lack the module jdk.net that has the option. */
  private static final String IDLE = "TCP_KEEPIDLE";

  private KeepAlive() {}

  /** Lets the system show, from a minute of silence on, that a connection is still used. */
  static void set(SocketChannel channel) throws IOException {
    channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
    for (SocketOption<?> option : channel.supportedOptions()) {
      if (option.name().equals(IDLE) && option.type() == Integer.class) {
        @SuppressWarnings("unchecked") // its type was looked at
        SocketOption<Integer> idle = (SocketOption<Integer>) option;
        channel.setOption(idle, IDLE_SECONDS);
      }
    }
  }
}
