package dev.tutti.aeron.cluster.member;

import dev.tutti.aeron.driver.Channels;
import io.aeron.cluster.client.AeronCluster;
import io.aeron.cluster.codecs.AdminRequestDecoder;
import io.aeron.cluster.codecs.ChallengeResponseDecoder;
import io.aeron.cluster.codecs.MessageHeaderDecoder;
import io.aeron.cluster.codecs.SessionConnectRequestDecoder;
import io.aeron.logbuffer.FrameDescriptor;
import io.aeron.protocol.DataHeaderFlyweight;
import io.aeron.protocol.HeaderFlyweight;
import java.nio.ByteOrder;
import org.agrona.BitUtil;
import org.agrona.DirectBuffer;

/** A check of the packets that clients send to a member of a cluster. */
final class IngressCheck {
  /*
   * Aeron allocates as many bytes as such a message announces before it compares them with the
   * message: up to 2 GiB, for anyone, and an OutOfMemoryError ends the member. A message can begin
   * in one packet and announce its lengths in the next, so messages with lengths must be in one
   * packet; those of clients have a few hundred bytes.
   */
  private static final int HEADER = DataHeaderFlyweight.HEADER_LENGTH;
  private static final int SCHEMA = SessionConnectRequestDecoder.SCHEMA_ID;
  static final int STREAM = AeronCluster.Configuration.ingressStreamId();

  private IngressCheck() {}

  /**
   * Returns how many bytes of its term a packet fills, or 0 for a sign of life, or -1 if it may not
   * pass: a message lacks room for what it announces, or the packet does not end in its term.
   *
   * @param packet begins with a packet of the stream of clients
   * @param length the length of the packet in bytes, at least that of a header
   */
  static int filled(DirectBuffer packet, int length) {
    int room = Channels.TERM_BYTES - packet.getInt(DataHeaderFlyweight.TERM_OFFSET_FIELD_OFFSET);
    if (packet.getInt(0, ByteOrder.LITTLE_ENDIAN) == 0) {
      return length == HEADER ? 0 : -1;
    }
    int at = 0;
    while (at < length) {
      if (length - at < HEADER) {
        return -1;
      }
      int frame = packet.getInt(at, ByteOrder.LITTLE_ENDIAN);
      if (getShort(packet, at + HeaderFlyweight.TYPE_FIELD_OFFSET)
          == HeaderFlyweight.HDR_TYPE_PAD) {
        // The rest of a term; only its header is sent.
        return length - at == HEADER && frame == room - at ? room : -1;
      }
      if (frame < HEADER || frame > length - at || !passes(packet, at, frame)) {
        return -1;
      }
      at += BitUtil.align(frame, FrameDescriptor.FRAME_ALIGNMENT);
    }
    return at <= room ? at : -1;
  }

  private static boolean passes(DirectBuffer packet, int at, int frame) {
    int flags = packet.getByte(at + HeaderFlyweight.FLAGS_FIELD_OFFSET);
    if ((flags & FrameDescriptor.BEGIN_FRAG_FLAG) == 0) {
      return true;
    }
    int message = at + HEADER;
    int end = at + frame;
    if (end - message < MessageHeaderDecoder.ENCODED_LENGTH) {
      return false;
    }
    int texts =
        getShort(packet, message + 4) == SCHEMA
            ? texts(getShort(packet, message + 2), getShort(packet, message + 6))
            : 0;
    boolean whole = (flags & FrameDescriptor.END_FRAG_FLAG) != 0;
    long next = (long) message + MessageHeaderDecoder.ENCODED_LENGTH + getShort(packet, message);
    for (int i = 0; i < texts; i++) {
      if (!whole || next + Integer.BYTES > end) {
        return false;
      }
      long text = packet.getInt((int) next, ByteOrder.LITTLE_ENDIAN) & 0xffff_ffffL;
      next += Integer.BYTES + text;
    }
    return texts == 0 || next <= end;
  }

  /** Returns the number of fields that announce their lengths. */
  private static int texts(int template, int version) {
    return switch (template) {
      case SessionConnectRequestDecoder.TEMPLATE_ID ->
          version < SessionConnectRequestDecoder.clientInfoSinceVersion() ? 2 : 3;
      case ChallengeResponseDecoder.TEMPLATE_ID, AdminRequestDecoder.TEMPLATE_ID -> 1;
      default -> 0;
    };
  }

  private static int getShort(DirectBuffer packet, int at) {
    return packet.getShort(at, ByteOrder.LITTLE_ENDIAN) & 0xffff;
  }
}
