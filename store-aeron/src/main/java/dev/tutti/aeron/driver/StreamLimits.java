package dev.tutti.aeron.driver;

import dev.tutti.aeron.wire.LogNames;
import dev.tutti.spi.Time;
import dev.tutti.store.net.LimitedLog;
import io.aeron.driver.DataPacketDispatcher;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ReceiveChannelEndpointSupplier;
import io.aeron.driver.media.ReceiveChannelEndpoint;
import io.aeron.driver.media.UdpChannel;
import org.agrona.concurrent.status.AtomicCounter;

/**
 * The limits of what strangers can make a driver allocate: whoever reaches a port can announce
 * streams to it, and the sender of a stream determines how long its terms are, up to 1 GiB.
 *
 * @param termBytes the longest terms, in bytes; streams with longer ones are ignored
 * @param sessions the number of senders of one stream
 * @param port creates the ports, which apply the limits
 */
public record StreamLimits(int termBytes, int sessions, Port port) {
  /** A creator of ports. */
  public interface Port {
    ReceiveChannelEndpoint create(
        UdpChannel channel,
        DataPacketDispatcher dispatcher,
        AtomicCounter status,
        MediaDriver.Context context,
        StreamLimits limits,
        LimitedLog log);
  }

  ReceiveChannelEndpointSupplier endpoints() {
    LimitedLog log = new LimitedLog(System.getLogger(LogNames.CLIENT), Time.SYSTEM);
    return (channel, dispatcher, status, context) ->
        port.create(channel, dispatcher, status, context, this, log);
  }
}
