package dev.tutti.aeron.driver;

import dev.tutti.aeron.wire.MalformedMessageException;
import dev.tutti.spi.HostPort;
import java.net.InetAddress;

/** Aeron's channel URIs. */
public final class Channels {
  public static final String IPC = "aeron:ipc";

  /** The length of the terms of all streams except logs, in bytes. */
  public static final int TERM_BYTES = 64 * 1024;

  private static final String TERM = "term-length=" + TERM_BYTES;

  private Channels() {}

  public static String udp(InetAddress address, int port) {
    String host = address.getHostAddress();
    int scope = host.indexOf('%');
    String plain = scope < 0 ? host : host.substring(0, scope);
    return "aeron:udp?endpoint=" + new HostPort(plain, port);
  }

  /** Returns the channel of a publication, with the same short terms on every driver. */
  public static String out(String channel) {
    return channel + (channel.indexOf('?') < 0 ? "?" : "|") + TERM;
  }

  /** Returns the port of an endpoint such as 10.0.0.1:4040. */
  public static int port(String endpoint) {
    try {
      int port = Integer.parseInt(endpoint.substring(endpoint.lastIndexOf(':') + 1));
      if (port > 0 && port <= 0xffff) {
        return port;
      }
    } catch (NumberFormatException e) {
      throw new MalformedMessageException("'" + endpoint + "' is not an endpoint");
    }
    throw new MalformedMessageException("'" + endpoint + "' is not an endpoint");
  }
}
