package dev.tutti.gloo.transport;

import java.nio.ByteBuffer;

/**
 * Lays out the header that precedes every message: six little-endian 64-bit fields, {@code nbytes,
 * opcode, slot, offset, length, roffset} (Gloo: {@code transport/tcp/pair.h}, {@code struct Op}).
 */
final class Header {
  /** Bytes of a header. */
  static final int BYTES = 48;

  /** A message into a registered buffer, which PyTorch never sends. */
  static final int SEND_BUFFER = 0;

  /** A message; {@code length} bytes follow. */
  static final int SEND_UNBOUND_BUFFER = 1;

  /** The sender announces a message. */
  static final int NOTIFY_SEND_READY = 2;

  /** The receiver is ready for a message. */
  static final int NOTIFY_RECV_READY = 3;

  /**
   * A rank of Tutti leaves and says why; sent only to ranks that {@code PeerAddress} shows to be
   * Tutti's own. The field {@code slot} holds a rank to blame, maybe the sender itself, or {@link
   * #CLEAN} or {@link #UNKNOWN}.
   */
  static final int FAREWELL = 0x54757474;

  /**
   * A short message of a rank of Tutti to another one that need not be ready for it; {@code length}
   * bytes follow.
   */
  static final int EAGER = 0x54757476;

  /** Wakes a rank of Tutti to look at the memory that it shares with the sender. */
  static final int DOORBELL = 0x54757475;

  /**
   * A rank of Tutti tells one with which it shares memory about itself: {@code slot} is its
   * process, {@code length} an address in it, {@code roffset} the number that is there ({@link
   * Loans}).
   */
  static final int INTRODUCTION = 0x54757477;

  /** A rank of Tutti can read the number of the one that introduced itself. */
  static final int READABLE = 0x54757478;

  /**
   * A message that is to be copied from the memory of its sender; {@code offset} is its address.
   */
  static final int LOAN = 0x54757479;

  /** The oldest loan of the slot was copied. */
  static final int RETURN = 0x5475747a;

  /** {@link #NOTIFY_SEND_READY} and {@link #LOAN} in one, whether the peer is ready or not. */
  static final int OFFER = 0x5475747b;

  /** The slot of a farewell after which nothing is amiss. */
  static final long CLEAN = -1;

  /** The slot of a farewell after a failure for which no rank is to blame. */
  static final long UNKNOWN = -2;

  private Header() {}

  /**
   * Writes a header.
   *
   * @param out a little-endian buffer
   * @param opcode one of the constants
   * @param slot names the exchange
   * @param length bytes of the message; follow the header where it {@linkplain #hasPayload says so}
   * @param signature what the ranks must agree on in a collective, between ranks of Tutti; else 0
   */
  static void put(ByteBuffer out, int opcode, long slot, long length, long signature) {
    int at = out.position();
    out.putLong(at, hasPayload(opcode) ? BYTES + length : BYTES);
    out.putLong(at + 8, opcode);
    out.putLong(at + 16, slot);
    out.putLong(at + 24, 0);
    out.putLong(at + 32, length);
    out.putLong(at + 40, signature);
    out.position(at + BYTES);
  }

  /** Adds to the header just written where its message is. */
  static void putAddress(ByteBuffer out, long address) {
    out.putLong(out.position() - BYTES + 24, address);
  }

  /** Tells whether bytes follow a header. */
  static boolean hasPayload(long opcode) {
    return opcode == SEND_UNBOUND_BUFFER || opcode == EAGER;
  }

  static long nbytes(ByteBuffer in, int at) {
    return in.getLong(at);
  }

  static long opcode(ByteBuffer in, int at) {
    return in.getLong(at + 8);
  }

  static long slot(ByteBuffer in, int at) {
    return in.getLong(at + 16);
  }

  static long address(ByteBuffer in, int at) {
    return in.getLong(at + 24);
  }

  static long length(ByteBuffer in, int at) {
    return in.getLong(at + 32);
  }

  static long signature(ByteBuffer in, int at) {
    return in.getLong(at + 40);
  }
}
