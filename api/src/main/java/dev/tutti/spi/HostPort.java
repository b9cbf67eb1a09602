package dev.tutti.spi;

import dev.tutti.RendezvousException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.URI;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The address of a server. A host name may contain "_", as those of containers often do; {@link
 * java.net.URI} finds no host in such an address.
 *
 * @param host a host name or an IP address, without brackets
 * @param port the port, at most 65535, or -1 if none is given
 */
public record HostPort(String host, int port) {
  private static final Pattern NAME = Pattern.compile("[\\p{L}\\p{N}_]([\\p{L}\\p{N}._-]*)");
  private static final Pattern IPV6 = Pattern.compile("[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%[\\w.-]+)?");
  private static final Pattern PORT = Pattern.compile("\\d{1,5}");
  private static final int MAX_PORT = 65535;

  /**
   * Parses {@code host}, {@code host:port}, {@code [ipv6]}, {@code [ipv6]:port} or a plain IPv6
   * address, which has no port.
   *
   * @param text the address
   * @throws IllegalArgumentException describing what is wrong with the text
   */
  public static HostPort parse(String text) {
    int end;
    String host;
    if (text.startsWith("[")) {
      int close = text.indexOf(']');
      host = close < 0 ? text : text.substring(1, close);
      require(close > 0 && IPV6.matcher(host).matches(), "'" + text + "' is not a host");
      end = close + 1;
    } else if (text.indexOf(':') != text.lastIndexOf(':')) {
      require(
          IPV6.matcher(text).matches(),
          "'"
              + text
              + "' is not a host; an IPv6 address with a port needs brackets, as in [::1]:29500");
      host = text;
      end = text.length();
    } else {
      end = text.indexOf(':') < 0 ? text.length() : text.indexOf(':');
      host = text.substring(0, end);
      require(!host.isEmpty(), "the host is missing");
    }
    String rest = text.substring(end);
    require(rest.isEmpty() || rest.startsWith(":"), "'" + text + "' is not a host");
    int port = rest.isEmpty() ? -1 : number(rest.substring(1));
    require(host.contains(":") || NAME.matcher(host).matches(), "'" + host + "' is not a host");
    return new HostPort(host, port);
  }

  /**
   * Formats the address of a socket for people to read; the JDK would put a slash, or the name and
   * a slash, in front of it.
   *
   * @param address the address, or null if it is not known
   */
  public static String text(@Nullable SocketAddress address) {
    if (!(address instanceof InetSocketAddress socket)) {
      return String.valueOf(address);
    }
    InetAddress ip = socket.getAddress();
    String host = ip == null ? socket.getHostString() : ip.getHostAddress();
    return new HostPort(host, socket.getPort()).toString();
  }

  /**
   * Parses the address in a URL, which must have a host and a port.
   *
   * @param url the URL, as in {@code tcp://host:port}
   * @throws RendezvousException describing what is wrong with the URL
   */
  public static HostPort ofServer(URI url) {
    String authority = url.getRawAuthority();
    try {
      HostPort address = parse(authority == null ? "" : authority);
      if (address.port() >= 0) {
        return address;
      }
    } catch (IllegalArgumentException e) {
      throw new RendezvousException(e.getMessage() + ", in " + url, e);
    }
    throw new RendezvousException("the port number is missing in " + url);
  }

  private static int number(String text) {
    boolean readable = PORT.matcher(text).matches() && Integer.parseInt(text) <= MAX_PORT;
    require(readable, "the port must be a number from 1 to " + MAX_PORT + ", not '" + text + "'");
    return Integer.parseInt(text);
  }

  /** Returns the address as written in a URL. */
  @Override
  public String toString() {
    String bracketed = host.contains(":") ? "[" + host + "]" : host;
    return port < 0 ? bracketed : bracketed + ":" + port;
  }

  private static void require(boolean holds, String message) {
    if (!holds) {
      throw new IllegalArgumentException(message);
    }
  }
}
