package dev.tutti.aeron.driver;

import dev.tutti.aeron.wire.LogNames;
import dev.tutti.spi.Time;
import dev.tutti.store.net.LimitedLog;
import io.aeron.driver.DataPacketDispatcher;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ReceiveChannelEndpointSupplier;
import io.aeron.driver.media.ImageConnection;
import io.aeron.driver.media.ReceiveChannelEndpoint;
import io.aeron.driver.media.UdpChannel;
import io.aeron.logbuffer.FrameDescriptor;
import io.aeron.protocol.DataHeaderFlyweight;
import io.aeron.protocol.SetupFlyweight;
import java.net.InetSocketAddress;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.status.AtomicCounter;

/**
 * The limits of what strangers can make a driver allocate: whoever reaches a port can announce
 * streams to it, and the sender of a stream determines how long its terms are, up to 1 GiB.
 *
 * @param termBytes the longest terms, in bytes; streams with longer ones are ignored
 * @param sessions the number of senders of one stream
 */
public record StreamLimits(int termBytes, int sessions) {
  /** The limits of a driver whose streams all have the terms of {@link Channels#out}. */
  public static final StreamLimits SHORT_TERMS = new StreamLimits(EmbeddedDriver.TERM_BYTES, 64);

  ReceiveChannelEndpointSupplier endpoints() {
    LimitedLog log = new LimitedLog(System.getLogger(LogNames.CLIENT), Time.SYSTEM);
    return (channel, dispatcher, status, context) ->
        new Endpoint(channel, dispatcher, status, context, this, log);
  }

  /**
   * A port that ignores streams with long terms, packets that begin where no frame does, and
   * messages to a cluster that announce more than they have or change others; used by the driver's
   * thread.
   */
  private static final class Endpoint extends ReceiveChannelEndpoint {
    private final StreamLimits limits;
    private final LimitedLog log;
    private final IngressOrder order;

    Endpoint(
        UdpChannel channel,
        DataPacketDispatcher dispatcher,
        AtomicCounter status,
        MediaDriver.Context context,
        StreamLimits limits,
        LimitedLog log) {
      super(channel, dispatcher, status, context);
      this.limits = limits;
      this.log = log;
      order = new IngressOrder(2 * limits.sessions);
    }

    @Override
    public int onDataPacket(
        DataHeaderFlyweight header,
        UnsafeBuffer buffer,
        int length,
        InetSocketAddress source,
        int transport) {
      if (length < IngressCheck.HEADER || !isOfFrame(header.termOffset())) {
        ignored("packet", source, "offset", noFrame(header.termOffset()));
        return 0;
      }
      return header.streamId() == IngressCheck.STREAM
          ? onIngress(header, buffer, length, source, transport)
          : super.onDataPacket(header, buffer, length, source, transport);
    }

    private int onIngress(
        DataHeaderFlyweight header,
        UnsafeBuffer buffer,
        int length,
        InetSocketAddress source,
        int transport) {
      int filled = IngressCheck.filled(buffer, length);
      if (filled < 0) {
        ignored("message", source, "length", "it announces more bytes than it has");
        return 0;
      }
      int session = header.sessionId();
      if (!order.isNext(session, header.termId(), header.termOffset(), filled)) {
        // Only a sign of life, from where it ends, so that Aeron asks for what is missing.
        header.termOffset(header.termOffset() + filled).frameLength(0);
        return super.onDataPacket(header, buffer, IngressCheck.HEADER, source, transport);
      }
      int received = super.onDataPacket(header, buffer, length, source, transport);
      if (received > 0) {
        order.passed(session, filled);
      }
      return received;
    }

    @Override
    public void sendStatusMessage(
        ImageConnection[] connections,
        int session,
        int stream,
        int term,
        int offset,
        int window,
        short flags) {
      super.sendStatusMessage(connections, session, stream, term, offset, window, flags);
      if (stream == IngressCheck.STREAM) {
        order.confirmed(session, term, offset);
      }
    }

    @Override
    public void onSetupMessage(
        SetupFlyweight header,
        UnsafeBuffer buffer,
        int length,
        InetSocketAddress source,
        int transport) {
      int most =
          header.streamId() == IngressCheck.STREAM ? EmbeddedDriver.TERM_BYTES : limits.termBytes;
      int announced = header.termLength();
      int offset = header.termOffset();
      if (announced > most) {
        ignored(
            "stream",
            source,
            "long terms",
            "its terms have %d bytes, more than the %d of a store".formatted(announced, most));
      } else if (isOfFrame(offset) && offset <= announced) {
        super.onSetupMessage(header, buffer, length, source, transport);
      } else {
        ignored("packet", source, "offset", noFrame(offset));
      }
    }

    /** Aeron reads a stream from where it is said to begin, and never gets past another place. */
    private static boolean isOfFrame(int termOffset) {
      return termOffset >= 0 && termOffset % FrameDescriptor.FRAME_ALIGNMENT == 0;
    }

    private static String noFrame(int termOffset) {
      return "no frame begins at byte " + termOffset + " of a term";
    }

    private void ignored(String what, InetSocketAddress source, String cause, String why) {
      log.warn(
          cause,
          source.getAddress().getHostAddress(),
          "ignored a %s from %s at %s: %s".formatted(what, source, originalUriString(), why));
    }
  }
}
