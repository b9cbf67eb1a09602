package dev.tutti.gloo.transport.connect;

import java.net.Inet4Address;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * The address at which a rank listens, as it is published: a Linux {@code sockaddr_storage} of 128
 * bytes and a sequence number (Gloo: {@code transport/tcp/address.cc}).
 *
 * @param socket the address
 * @param sequence the sequence number, −1 for the address of a rank rather than of one pair
 * @param tutti whether the rank runs Tutti
 * @param network the number from {@link NetworkId}
 * @param flags the flags from {@link Protection}; 0 for a PyTorch rank
 */
public record PeerAddress(
    InetSocketAddress socket, long sequence, boolean tutti, long network, long flags) {
  /** The size of a published address in bytes. */
  public static final int BYTES = 136;

  private static final int STORAGE = 128;
  private static final int AF_INET = 2;
  private static final int AF_INET6 = 10;

  /*
   * Gloo neither writes nor reads the last bytes of the storage. A Tutti rank puts its signature
   * there. In front of the signature it stores its network, how it protects its connections, and
   * the seal of BlobSeal.
   */
  private static final byte[] SIGNATURE = "tutti-gloo-wire1".getBytes(StandardCharsets.US_ASCII);
  private static final int NETWORK = STORAGE - SIGNATURE.length - Long.BYTES;
  private static final int FLAGS = NETWORK - Long.BYTES;

  /** The offset of the seal, which is {@link dev.tutti.store.JobToken#PROOF_BYTES} long. */
  static final int SEAL = FLAGS - 32;

  /** Formats an address for human readers; the JDK puts a slash or the name before it. */
  public static String text(SocketAddress address) {
    if (address instanceof InetSocketAddress internet && !internet.isUnresolved()) {
      return internet.getAddress().getHostAddress() + " port " + internet.getPort();
    }
    return address.toString();
  }

  public void put(ByteBuffer out) {
    ByteBuffer bytes = out.slice(out.position(), BYTES).order(ByteOrder.LITTLE_ENDIAN);
    InetAddress address = socket.getAddress();
    bytes.putShort(0, (short) (address instanceof Inet6Address ? AF_INET6 : AF_INET));
    bytes.put(2, (byte) (socket.getPort() >> 8)).put(3, (byte) socket.getPort());
    if (address instanceof Inet6Address six) {
      bytes.put(8, six.getAddress());
      bytes.putInt(24, six.getScopeId());
    } else {
      bytes.put(4, address.getAddress());
    }
    if (tutti) {
      bytes.putLong(FLAGS, flags);
      bytes.putLong(NETWORK, network);
      bytes.put(STORAGE - SIGNATURE.length, SIGNATURE);
    }
    bytes.putLong(STORAGE, sequence);
    out.position(out.position() + BYTES);
  }

  /**
   * Reads a published address.
   *
   * @param in a buffer with at least {@link #BYTES} remaining
   * @throws IllegalArgumentException if the address family is neither IPv4 nor IPv6
   */
  public static PeerAddress read(ByteBuffer in) {
    ByteBuffer bytes = in.slice(in.position(), BYTES).order(ByteOrder.LITTLE_ENDIAN);
    in.position(in.position() + BYTES);
    int family = bytes.getShort(0) & 0xffff;
    int port = Short.toUnsignedInt(Short.reverseBytes(bytes.getShort(2)));
    byte[] signature = new byte[SIGNATURE.length];
    bytes.get(STORAGE - signature.length, signature);
    boolean tutti = Arrays.equals(signature, SIGNATURE);
    InetSocketAddress socket = new InetSocketAddress(readIp(bytes, family), port);
    long network = tutti ? bytes.getLong(NETWORK) : NetworkId.UNKNOWN;
    long flags = tutti ? bytes.getLong(FLAGS) : 0;
    return new PeerAddress(socket, bytes.getLong(STORAGE), tutti, network, flags);
  }

  private static InetAddress readIp(ByteBuffer bytes, int family) {
    try {
      if (family == AF_INET) {
        byte[] four = new byte[4];
        bytes.get(4, four);
        return InetAddress.getByAddress(four);
      }
      if (family == AF_INET6) {
        byte[] sixteen = new byte[16];
        bytes.get(8, sixteen);
        int scope = bytes.getInt(24);
        return scope == 0
            ? InetAddress.getByAddress(sixteen)
            : Inet6Address.getByAddress(null, sixteen, scope);
      }
      throw new IllegalArgumentException("unknown address family " + family);
    } catch (UnknownHostException e) {
      throw new IllegalArgumentException(e);
    }
  }

  /**
   * Determines which rank connects: of two ranks, the one with the greater address connects and the
   * other accepts. Compares the bytes of the addresses, then the ports as a little-endian machine
   * reads them (with bytes swapped), then the sequence numbers.
   *
   * @param other the peer's address
   * @param sequence the number that this rank expects from the peer
   * @param otherSequence the number that the peer expects from this rank
   * @return positive if this rank connects, negative if it accepts, 0 if the addresses are the same
   * @throws IllegalArgumentException if the addresses are of different families
   */
  public int compareRole(PeerAddress other, long sequence, long otherSequence) {
    InetAddress mine = socket.getAddress();
    InetAddress theirs = other.socket.getAddress();
    if (mine instanceof Inet4Address != theirs instanceof Inet4Address) {
      throw new IllegalArgumentException(
          mine.getHostAddress()
              + " and "
              + theirs.getHostAddress()
              + " are of different address families");
    }
    int order = Arrays.compareUnsigned(mine.getAddress(), theirs.getAddress());
    if (order == 0) {
      order = Integer.compare(swap(socket.getPort()), swap(other.socket.getPort()));
    }
    return order == 0 ? Long.compare(sequence, otherSequence) : order;
  }

  private static int swap(int port) {
    return Short.reverseBytes((short) port) & 0xffff;
  }
}
