package dev.tutti.cuda.collective;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.spi.Operation;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** The operations of a group of one rank on their way through the device. Not thread-safe. */
final class SoleRank {
  private static final long CLOSE_NANOS = TimeUnit.SECONDS.toNanos(5);

  private final CudaDevice device;
  private final ChannelEvents events;
  private @Nullable CudaEvent lastEvent;

  SoleRank(CudaDevice device) {
    this.device = device;
    // There is no peer that could spoil a result.
    this.events = new ChannelEvents(device, op -> true);
  }

  /** Ends an operation once the device has done the work that is now in the current stream. */
  void follow(Operation op) {
    CudaStream stream = device.currentStream();
    if (stream.isCapturing()) {
      return;
    }
    ChannelEvent event = events.take(op);
    Parts.of(event.event()).recordIn(stream.handle());
    lastEvent = event.event();
    op.enqueued(event);
  }

  /** Frees the events, unless the device does not reach the last one in time. */
  void close() {
    CudaEvent last = lastEvent;
    if (last == null || last.awaitReached(System.nanoTime() + CLOSE_NANOS)) {
      events.close();
    }
  }
}
