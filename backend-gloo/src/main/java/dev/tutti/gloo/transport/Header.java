package dev.tutti.gloo.transport;

import java.nio.ByteBuffer;

/**
 * Defines the layout of the header that precedes every message: six little-endian 64-bit fields,
 * {@code nbytes, opcode, slot, offset, length, roffset} (Gloo: {@code transport/tcp/pair.h}, {@code
 * struct Op}).
 */
final class Header {
  /** The size of a header in bytes. */
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
   * A Tutti rank leaves and says why; sent only to ranks whose {@code PeerAddress} identifies them
   * as Tutti ranks. The {@code slot} field holds the rank to blame, possibly the sender itself, or
   * {@link #CLEAN} or {@link #UNKNOWN}.
   */
  static final int FAREWELL = 0x54757474;

  /**
   * A short message between Tutti ranks, for which the receiver need not be ready; {@code length}
   * bytes follow.
   */
  static final int EAGER = 0x54757476;

  /** Wakes a Tutti rank so that it checks the memory that it shares with the sender. */
  static final int DOORBELL = 0x54757475;

  /**
   * A Tutti rank introduces itself to one with which it shares memory: {@code slot} is its process,
   * {@code length} an address in it, and {@code roffset} the number stored there ({@link
   * CmaTransfers}).
   */
  static final int INTRODUCTION = 0x54757477;

  /** A Tutti rank can read the number of the rank that introduced itself. */
  static final int READABLE = 0x54757478;

  /** A message to be copied from its sender's memory; {@code offset} is the address. */
  static final int LOAN = 0x54757479;

  /** The oldest loan of the slot has been copied. */
  static final int RETURN = 0x5475747a;

  /** {@link #NOTIFY_SEND_READY} and {@link #LOAN} in one, sent whether or not the peer is ready. */
  static final int OFFER = 0x5475747b;

  /** The slot of a farewell without a failure. */
  static final long CLEAN = -1;

  /** The slot of a farewell after a failure for which no rank is to blame. */
  static final long UNKNOWN = -2;

  private Header() {}

  /**
   * Writes a header.
   *
   * @param out a little-endian buffer
   * @param opcode one of the opcode constants
   * @param slot identifies the exchange
   * @param length the number of bytes of the message, which follow the header if it {@linkplain
   *     #hasPayload says so}
   * @param signature the values the ranks must agree on in a collective, between Tutti ranks;
   *     otherwise 0
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

  /** Adds the address of the message to the header just written. */
  static void putAddress(ByteBuffer out, long address) {
    out.putLong(out.position() - BYTES + 24, address);
  }

  /** Returns whether bytes follow a header. */
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
