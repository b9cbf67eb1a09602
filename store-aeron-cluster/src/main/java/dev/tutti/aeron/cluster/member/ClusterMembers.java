package dev.tutti.aeron.cluster.member;

import dev.tutti.spi.HostPort;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * The addresses of the members of a cluster.
 *
 * @param all the first UDP port of each member, by its number
 */
public record ClusterMembers(List<HostPort> all) {
  /*
   * The number of consecutive ports of a member: for clients, for consensus among the members, for
   * the log, for catching up on the log, and for its archive.
   */
  public static final int PORTS = 5;

  private static final int MOST_PORT = 0xffff;

  /**
   * Reads {@code a:29500,b:29500,c:29500}.
   *
   * @throws IllegalArgumentException describing what is wrong with the text
   */
  public static ClusterMembers parse(String text) {
    List<HostPort> all =
        Arrays.stream(text.split(",", -1)).map(member -> HostPort.parse(member.trim())).toList();
    for (int i = 0; i < all.size(); i++) {
      HostPort member = all.get(i);
      if (member.port() < 1 || member.port() + PORTS - 1 > MOST_PORT) {
        throw new IllegalArgumentException(
            "member %s of a store cluster needs a port from 1 to %d; it uses that port and the next %d"
                .formatted(member, MOST_PORT - PORTS + 1, PORTS - 1));
      }
      for (HostPort other : all.subList(0, i)) {
        if (other.host().equals(member.host()) && Math.abs(other.port() - member.port()) < PORTS) {
          throw new IllegalArgumentException(
              "members %s and %s of a store cluster overlap; each uses %d consecutive ports"
                  .formatted(other, member, PORTS));
        }
      }
    }
    return new ClusterMembers(all);
  }

  public HostPort member(int number) {
    if (number < 0 || number >= all.size()) {
      throw new IllegalArgumentException(
          "no member %d in %s; members are numbered from 0".formatted(number, this));
    }
    return all.get(number);
  }

  /** Returns a port of a member, in Aeron's notation. */
  String endpoint(int number, int port) {
    HostPort member = member(number);
    return new HostPort(member.host(), member.port() + port).toString();
  }

  /** Returns a wildcard port of a member, in Aeron's notation. */
  String anyPort(int number) {
    return new HostPort(member(number).host(), 0).toString();
  }

  /** Returns the endpoints to which clients send, in Aeron's notation. */
  public String ingress() {
    return IntStream.range(0, all.size())
        .mapToObj(i -> i + "=" + endpoint(i, 0))
        .collect(Collectors.joining(","));
  }

  /** Returns all ports of all members, in Aeron's notation. */
  public String endpoints() {
    return IntStream.range(0, all.size())
        .mapToObj(
            i ->
                IntStream.range(0, PORTS)
                    .mapToObj(port -> endpoint(i, port))
                    .collect(Collectors.joining(",", i + ",", "")))
        .collect(Collectors.joining("|"));
  }

  /**
   * Returns the address of this host on the route to the members.
   *
   * @throws SocketException if there is no route to any of them
   */
  public InetAddress localAddress() throws SocketException {
    SocketException last = new SocketException("there are no members");
    for (HostPort member : all) {
      try (DatagramSocket socket = new DatagramSocket()) {
        socket.connect(new InetSocketAddress(member.host(), member.port()));
        return socket.getLocalAddress();
      } catch (SocketException e) {
        last = e;
      } catch (RuntimeException e) {
        last = new SocketException(member + ": " + e.getMessage());
      }
    }
    throw last;
  }

  /** Returns the hosts whose names cannot be resolved here. */
  public List<String> unresolved() {
    return all.stream().map(HostPort::host).distinct().filter(ClusterMembers::isUnknown).toList();
  }

  private static boolean isUnknown(String host) {
    try {
      var _ = InetAddress.getByName(host);
      return false;
    } catch (UnknownHostException e) {
      return true;
    }
  }

  @Override
  public String toString() {
    return all.stream().map(HostPort::toString).collect(Collectors.joining(","));
  }
}
