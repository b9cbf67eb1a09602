package dev.tutti.gloo;

import dev.tutti.Setting;
import dev.tutti.Settings;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.nio.channels.DatagramChannel;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.UnsupportedAddressTypeException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The local address that other ranks connect to, and why it was chosen.
 *
 * @param address the address
 * @param interfaceName the interface it belongs to; empty if none is known
 * @param reason how it was chosen, as text
 */
public record BindAddress(InetAddress address, String interfaceName, String reason) {
  /** The network interface to use, or a list from which the first usable one is taken. */
  public static final Setting<String> INTERFACE =
      Setting.text(
          "GLOO_SOCKET_IFNAME",
          "",
          "network interface for Gloo; in a comma-separated list, the first usable one is used");

  /** The host of the store; here it only determines which local address faces that host. */
  public static final Setting<String> MASTER_ADDR =
      Setting.text("MASTER_ADDR", "", "host of the rank that hosts the store");

  private static final int ANY_PORT = 9;
  private static final Path INTERFACES = Path.of("/proc/thread-self/net/dev");

  /**
   * Chooses an address: that of an interface named by {@link #INTERFACE}, else the address from
   * which the host of the store is reached, else the address of this host's name, else the loopback
   * address.
   *
   * @param settings all settings
   * @throws IOException if none of the named interfaces exists, is up and has an address; the
   *     message lists the available interfaces
   */
  public static BindAddress choose(Settings settings) throws IOException {
    String names = settings.get(INTERFACE);
    if (!names.isBlank()) {
      return ofInterface(names);
    }
    String master = settings.get(MASTER_ADDR).strip();
    if (!master.isBlank()) {
      BindAddress route = ofRoute(master);
      if (route != null) {
        return route;
      }
    }
    BindAddress host = ofHostName();
    if (host != null) {
      return host;
    }
    return describe(
        InetAddress.getLoopbackAddress(), "loopback, because no other address is usable");
  }

  private static BindAddress ofInterface(String names) throws IOException {
    List<String> reasons = new ArrayList<>();
    for (String part : names.split(",")) {
      String name = part.strip();
      NetworkInterface found = name.isEmpty() ? null : NetworkInterface.getByName(name);
      if (found == null) {
        reasons.add(name + (exists(name) ? " has no address" : " does not exist"));
      } else if (!found.isUp()) {
        reasons.add(name + " is down");
      } else {
        Optional<InetAddress> address = addressOf(found);
        if (address.isPresent()) {
          return new BindAddress(address.get(), name, INTERFACE.name() + "=" + names);
        }
        reasons.add(name + " has no address");
      }
    }
    throw new IOException(
        INTERFACE.name()
            + "='"
            + names
            + "': "
            + String.join(", ", reasons)
            + "; usable interfaces are "
            + usableInterfaces());
  }

  /** Returns whether there is an interface, of which the JDK shows only those with an address. */
  private static boolean exists(String name) {
    try (Stream<String> lines = Files.lines(INTERFACES)) {
      return !name.isEmpty() && lines.anyMatch(line -> line.strip().startsWith(name + ":"));
    } catch (IOException | UncheckedIOException e) {
      return false; // This system has no such file.
    }
  }

  private static Optional<InetAddress> addressOf(NetworkInterface networkInterface) {
    List<InetAddress> all = Collections.list(networkInterface.getInetAddresses());
    return all.stream()
        .filter(Inet4Address.class::isInstance)
        .findFirst()
        .or(() -> all.stream().findFirst());
  }

  private static String usableInterfaces() {
    List<String> names = new ArrayList<>();
    try {
      for (NetworkInterface each : Collections.list(NetworkInterface.getNetworkInterfaces())) {
        if (each.isUp() && addressOf(each).isPresent()) {
          names.add(each.getName());
        }
      }
    } catch (SocketException e) {
      return "none"; // The JDK says so of a host that has none.
    }
    return String.join(", ", names);
  }

  private static @Nullable BindAddress ofRoute(String master) throws IOException {
    InetAddress host;
    try {
      host = InetAddress.getByName(master);
    } catch (IOException e) {
      return null;
    }
    // Connecting a datagram socket sends nothing; it only looks up the route in the kernel.
    try (DatagramChannel channel = DatagramChannel.open()) {
      channel.connect(new InetSocketAddress(host, ANY_PORT));
      if (channel.getLocalAddress() instanceof InetSocketAddress local
          && !local.getAddress().isAnyLocalAddress()) {
        return describe(local.getAddress(), "on the route to " + MASTER_ADDR.name() + "=" + master);
      }
      return null;
    } catch (UnsupportedAddressTypeException e) {
      throw new IOException(
          "%s=%s is an IPv6 address, but this JVM has no IPv6 (java.net.preferIPv4Stack, or the host"
                  .formatted(MASTER_ADDR.name(), master)
              + " has it off)",
          e);
    } catch (IOException e) {
      return null;
    }
  }

  private static @Nullable BindAddress ofHostName() {
    try {
      InetAddress local = InetAddress.getLocalHost();
      try (ServerSocketChannel probe = ServerSocketChannel.open()) {
        probe.bind(new InetSocketAddress(local, 0));
      }
      return describe(local, "the address of this host's name, " + local.getHostName());
    } catch (IOException e) {
      return null;
    }
  }

  private static BindAddress describe(InetAddress address, String reason) throws IOException {
    NetworkInterface found = NetworkInterface.getByInetAddress(address);
    return new BindAddress(address, found == null ? "" : found.getName(), reason);
  }
}
