package dev.tutti.aeron.cluster;

import io.aeron.cluster.ConsensusModule;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.SendChannelEndpointSupplier;
import io.aeron.driver.media.SendChannelEndpoint;
import io.aeron.driver.media.UdpChannel;
import io.aeron.protocol.DataHeaderFlyweight;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.status.AtomicCounter;

/**
 * A supplier, for the JVM of a member, of ports that lose what the member's log says while a file
 * exists, but not that it says nothing; named by a system property.
 */
public final class StuckLog implements SendChannelEndpointSupplier {
  /** The flags with which a JVM takes this supplier. */
  static String flags(Path file) {
    return "-Daeron.SendChannelEndpoint.supplier=%s -Dstuck=%s"
        .formatted(StuckLog.class.getName(), file);
  }

  @Override
  public SendChannelEndpoint newInstance(
      UdpChannel channel, AtomicCounter status, MediaDriver.Context context) {
    return new Endpoint(channel, status, context);
  }

  /** Returns whether this JVM was started with the flags of a supplier. */
  static boolean isUsed() {
    return System.getProperty("stuck") != null;
  }

  /** Returns whether the member's log is lost by now. */
  static boolean isStuck() {
    return Files.exists(Path.of(System.getProperty("stuck")));
  }

  private static final class Endpoint extends SendChannelEndpoint {
    private final UnsafeBuffer frame = new UnsafeBuffer();

    Endpoint(UdpChannel channel, AtomicCounter status, MediaDriver.Context context) {
      super(channel, status, context);
    }

    @Override
    public int send(ByteBuffer buffer) {
      int bytes = buffer.remaining();
      frame.wrap(buffer, buffer.position(), bytes);
      boolean lost =
          bytes > DataHeaderFlyweight.HEADER_LENGTH
              && DataHeaderFlyweight.streamId(frame, 0)
                  == ConsensusModule.Configuration.LOG_STREAM_ID_DEFAULT
              && isStuck();
      return lost ? bytes : super.send(buffer);
    }
  }
}
