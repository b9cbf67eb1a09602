package dev.tutti.aeron.cluster.session;

import dev.tutti.aeron.wire.FrameWriter;
import dev.tutti.spi.Time;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.agrona.concurrent.UnsafeBuffer;

/** A writer of complete requests to the leader; used under a lock. */
final class ClusterRequests {
  /*
   * The leader accepts nothing while it takes a snapshot. A request that was partly written
   * continues afterwards: a large one that was restarted might never be completed.
   */
  private static final long STUCK_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final long FULL_PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

  private final FrameWriter writer;
  private final Time time;

  ClusterRequests(FrameWriter writer, Time time) {
    this.writer = writer;
    this.time = time;
  }

  /**
   * Writes a request.
   *
   * @param code the kind of request
   * @param call the number of the call
   * @param request the body
   * @param giveUp when nobody waits for the request any longer, by {@link Time#nanoTime()}
   * @param goesOn called while there is no room, to check for events; returns whether writing still
   *     makes sense
   * @return whether the whole request was written
   */
  boolean write(int code, long call, UnsafeBuffer request, long giveUp, BooleanSupplier goesOn) {
    int at = writer.write(code, call, request, request.capacity(), 0);
    long stuck = time.nanoTime() + STUCK_NANOS;
    while (at >= 0) {
      if (!goesOn.getAsBoolean()) {
        return false;
      }
      long now = time.nanoTime();
      if (now - giveUp > 0 || (at == 0 && now - stuck > 0)) {
        return false;
      }
      time.park(this, FULL_PAUSE_NANOS);
      at = writer.write(code, call, request, request.capacity(), at);
    }
    return true;
  }
}
