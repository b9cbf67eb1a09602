package dev.tutti.gloo.transport.connect;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * The data that a rank publishes in the store: its host name and address, and for each rank the
 * sequence number that that rank must present when it connects (Gloo: {@code
 * rendezvous/context.cc}). Without these numbers a rank presents its own rank number.
 */
@SuppressWarnings("ArrayRecordComponent") // made, read and thrown away within the rendezvous
public record RankBlob(String hostname, PeerAddress address, long[] identifiers) {
  private static final int MAX_HOSTNAME = 1024;

  /**
   * Returns whether a rank is known to be unable to reach a loopback address of another one:
   * judging by their networks, or by their host names if those are unknown.
   *
   * @param other the data that the other rank published
   */
  public boolean isElsewhere(RankBlob other) {
    long own = address.network();
    long theirs = other.address.network();
    boolean known = own != NetworkId.UNKNOWN && theirs != NetworkId.UNKNOWN;
    return known ? own != theirs : !hostname.equals(other.hostname);
  }

  public byte[] toBytes() {
    byte[] host = hostname.getBytes(StandardCharsets.UTF_8);
    ByteBuffer out =
        ByteBuffer.allocate(8 + host.length + 8 + PeerAddress.BYTES + 8 * identifiers.length)
            .order(ByteOrder.LITTLE_ENDIAN);
    out.putLong(host.length).put(host).putLong(PeerAddress.BYTES);
    address.put(out);
    for (long identifier : identifiers) {
      out.putLong(identifier);
    }
    return out.array();
  }

  /**
   * Reads the data that a rank published.
   *
   * @param bytes the value from the store
   * @param identifierCount how many identifiers are expected: the number of ranks, or 0
   * @throws IllegalArgumentException if it does not have this form
   */
  public static RankBlob read(byte[] bytes, int identifierCount) {
    ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    try {
      long hostLength = in.getLong();
      if (hostLength < 0 || hostLength > MAX_HOSTNAME || hostLength > in.remaining()) {
        throw new IllegalArgumentException("host name of " + hostLength + " bytes");
      }
      byte[] host = new byte[(int) hostLength];
      in.get(host);
      long addressLength = in.getLong();
      if (addressLength != PeerAddress.BYTES || in.remaining() < PeerAddress.BYTES) {
        throw new IllegalArgumentException("address of " + addressLength + " bytes");
      }
      PeerAddress address = PeerAddress.read(in);
      if (in.remaining() != 8 * identifierCount) {
        throw new IllegalArgumentException(
            in.remaining() / 8
                + " identifiers, but "
                + identifierCount
                + " expected; all ranks must have the same WORLD_SIZE, TORCH_GLOO_LAZY_INIT and"
                + " GLOO_ENABLE_RANK_AS_SEQUENCE_NUMBER");
      }
      long[] identifiers = new long[identifierCount];
      in.asLongBuffer().get(identifiers);
      return new RankBlob(new String(host, StandardCharsets.UTF_8), address, identifiers);
    } catch (BufferUnderflowException e) {
      throw new IllegalArgumentException("only " + bytes.length + " bytes", e);
    }
  }
}
