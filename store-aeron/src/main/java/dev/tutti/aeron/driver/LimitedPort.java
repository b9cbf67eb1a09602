package dev.tutti.aeron.driver;

import dev.tutti.store.net.LimitedLog;
import io.aeron.driver.DataPacketDispatcher;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.media.ReceiveChannelEndpoint;
import io.aeron.driver.media.UdpChannel;
import io.aeron.logbuffer.FrameDescriptor;
import io.aeron.protocol.DataHeaderFlyweight;
import io.aeron.protocol.SetupFlyweight;
import java.net.InetSocketAddress;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.status.AtomicCounter;

/**
 * A port that ignores streams with long terms, and packets that begin where no frame does; used by
 * the driver's thread.
 */
public class LimitedPort extends ReceiveChannelEndpoint {
  /** The limits of a driver whose streams all have the terms of {@link Channels#out}. */
  public static final StreamLimits SHORT_TERMS =
      new StreamLimits(Channels.TERM_BYTES, 64, LimitedPort::new);

  private final StreamLimits limits;
  private final LimitedLog log;

  protected LimitedPort(
      UdpChannel channel,
      DataPacketDispatcher dispatcher,
      AtomicCounter status,
      MediaDriver.Context context,
      StreamLimits limits,
      LimitedLog log) {
    super(channel, dispatcher, status, context);
    this.limits = limits;
    this.log = log;
  }

  @Override
  public final int onDataPacket(
      DataHeaderFlyweight header,
      UnsafeBuffer buffer,
      int length,
      InetSocketAddress source,
      int transport) {
    if (length < DataHeaderFlyweight.HEADER_LENGTH || !isOfFrame(header.termOffset())) {
      ignored("packet", source, "offset", noFrame(header.termOffset()));
      return 0;
    }
    return pass(header, buffer, length, source, transport);
  }

  /** Passes on a packet that begins where a frame does; returns the number of bytes received. */
  protected int pass(
      DataHeaderFlyweight header,
      UnsafeBuffer buffer,
      int length,
      InetSocketAddress source,
      int transport) {
    return super.onDataPacket(header, buffer, length, source, transport);
  }

  /** Returns the length of the longest terms that a stream may have, in bytes. */
  protected int longestTerms(int stream) {
    return limits.termBytes();
  }

  @Override
  public final void onSetupMessage(
      SetupFlyweight header,
      UnsafeBuffer buffer,
      int length,
      InetSocketAddress source,
      int transport) {
    int most = longestTerms(header.streamId());
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

  /** Logs, now and then, that something was ignored. */
  protected final void ignored(String what, InetSocketAddress source, String cause, String why) {
    log.warn(
        cause,
        source.getAddress().getHostAddress(),
        "ignored a %s from %s at %s: %s".formatted(what, source, originalUriString(), why));
  }
}
