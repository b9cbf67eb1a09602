package dev.tutti.store;

import java.io.IOException;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;
import jdk.net.ExtendedSocketOptions;

/** Keeps connections that nobody uses from being forgotten on their way. */
final class KeepAlive {
  /*
   * Proxies, firewalls and translators of addresses forget a connection that was silent for some
   * minutes; the system's own first probe comes after two hours.
   */
  private static final int IDLE_SECONDS = 60;

  private KeepAlive() {}

  /** Lets the system show, from a minute of silence on, that a connection is still used. */
  static void set(SocketChannel channel) throws IOException {
    channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
    if (channel.supportedOptions().contains(ExtendedSocketOptions.TCP_KEEPIDLE)) {
      channel.setOption(ExtendedSocketOptions.TCP_KEEPIDLE, IDLE_SECONDS);
    }
  }
}
