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
 * Says where a rank listens, as it is published: a Linux {@code sockaddr_storage} of 128 bytes and
 * a sequence number (Gloo: {@code transport/tcp/address.cc}).
 *
 * @param socket the address
 * @param sequence −1, for the address of a rank rather than of one pair
 * @param tutti whether the rank runs Tutti
 * @param network from {@link NetworkId}
 * @param flags from {@link Protection}; 0 for a rank of PyTorch
 */
public record PeerAddress(
    InetSocketAddress socket, long sequence, boolean tutti, long network, long flags) {
  /** Bytes of a published address. */
  public static final int BYTES = 136;

  private static final int STORAGE = 128;
  private static final int AF_INET = 2;
  private static final int AF_INET6 = 10;

  /*
   * Gloo neither writes nor reads the last bytes of the storage: there a rank of Tutti signs, and in
   * front of that tells its network, how it protects its connections, and the seal of BlobSeal.
   */
  private static final byte[] SIGNATURE = "tutti-gloo-wire1".getBytes(StandardCharsets.US_ASCII);
  private static final int NETWORK = STORAGE - SIGNATURE.length - Long.BYTES;
  private static final int FLAGS = NETWORK - Long.BYTES;

  /** Where the seal begins, {@link dev.tutti.store.JobToken#PROOF_BYTES} long. */
  static final int SEAL = FLAGS - 32;

  /** Tells of an address whose network is not known, of a rank that protects nothing. */
  public PeerAddress(InetSocketAddress socket, long sequence, boolean tutti) {
    this(socket, sequence, tutti, NetworkId.UNKNOWN, 0);
  }

  /** Writes an address as people read it; the JDK puts a slash before it, or the name. */
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
   * Decides who connects: of two ranks the one with the greater address, the other accepts.
   * Compares the bytes of the addresses, then the ports as a little-endian machine reads them,
   * bytes swapped, then the sequence numbers.
   *
   * @param other the peer's address
   * @param sequence what this rank expects of the peer
   * @param otherSequence what the peer expects of this rank
   * @return positive if this rank connects, negative if it accepts, 0 if the addresses are the same
   * @throws IllegalArgumentException if the addresses are of different families
   */
  public int compareRole(PeerAddress other, long sequence, long otherSequence) {
    InetAddress mine = socket.getAddress();
    InetAddress theirs = other.socket.getAddress();
    if (mine instanceof Inet4Address != theirs instanceof Inet4Address) {
      throw new IllegalArgumentException(
          mine.getHostAddress() + " and " + theirs.getHostAddress() + " are of different families");
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
