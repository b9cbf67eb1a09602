package dev.tutti.store.net;

import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;

/** The address at which a host reaches itself. */
public final class Loopback {
  private static final InetAddress IPV4 = InetAddress.ofLiteral("127.0.0.1");
  private static final InetAddress IPV6 = InetAddress.ofLiteral("::1");

  private Loopback() {}

  /** Returns 127.0.0.1, or ::1 on a host that has only that. */
  public static String host() {
    return has(IPV6) && !has(IPV4) ? "::1" : IPV4.getHostAddress();
  }

  private static boolean has(InetAddress address) {
    try {
      return NetworkInterface.getByInetAddress(address) != null;
    } catch (SocketException e) {
      return false;
    }
  }
}
