package dev.tutti.aeron.cluster.member;

import dev.tutti.aeron.driver.Channels;
import dev.tutti.aeron.driver.LimitedPort;
import dev.tutti.aeron.driver.StreamLimits;
import dev.tutti.store.net.LimitedLog;
import io.aeron.driver.DataPacketDispatcher;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.media.ImageConnection;
import io.aeron.driver.media.UdpChannel;
import io.aeron.protocol.DataHeaderFlyweight;
import java.net.InetSocketAddress;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.status.AtomicCounter;

/**
 * A port of a member, which also ignores messages of clients that announce more than they have or
 * change others; used by the driver's thread.
 */
final class MemberPort extends LimitedPort {
  private final IngressOrder order;

  MemberPort(
      UdpChannel channel,
      DataPacketDispatcher dispatcher,
      AtomicCounter status,
      MediaDriver.Context context,
      StreamLimits limits,
      LimitedLog log) {
    super(channel, dispatcher, status, context, limits, log);
    order = new IngressOrder(2 * limits.sessions());
  }

  @Override
  protected int pass(
      DataHeaderFlyweight header,
      UnsafeBuffer buffer,
      int length,
      InetSocketAddress source,
      int transport) {
    if (header.streamId() != IngressCheck.STREAM) {
      return super.pass(header, buffer, length, source, transport);
    }
    int filled = IngressCheck.filled(buffer, length);
    if (filled < 0) {
      ignored("message", source, "length", "it announces more bytes than it has");
      return 0;
    }
    int session = header.sessionId();
    if (!order.isNext(session, header.termId(), header.termOffset(), filled)) {
      // Only a sign of life, from where it ends, so that Aeron requests what is missing.
      header.termOffset(header.termOffset() + filled).frameLength(0);
      return super.pass(header, buffer, DataHeaderFlyweight.HEADER_LENGTH, source, transport);
    }
    int received = super.pass(header, buffer, length, source, transport);
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
  protected int longestTerms(int stream) {
    return stream == IngressCheck.STREAM ? Channels.TERM_BYTES : super.longestTerms(stream);
  }
}
