package dev.tutti.aeron.cluster;

import dev.tutti.aeron.wire.FrameWriter;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.agrona.concurrent.UnsafeBuffer;

/** Writes whole requests to the leader; used under a lock. */
final class ClusterRequests {
  /*
   * The leader takes nothing while it takes a snapshot. A request of which something is written continues
   * afterwards: begun again, a large one might never be whole.
   */
  private static final long STUCK_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final long FULL_PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

  private final FrameWriter writer;

  ClusterRequests(FrameWriter writer) {
    this.writer = writer;
  }

  /**
   * Writes one.
   *
   * @param code what it says
   * @param call number of the call
   * @param request the body
   * @param giveUp when nobody waits for it any more, by {@link System#nanoTime()}
   * @param goesOn looks around while there is no room; says whether it still makes sense
   * @return whether all is written
   */
  boolean write(int code, long call, UnsafeBuffer request, long giveUp, BooleanSupplier goesOn) {
    int at = writer.write(code, call, request, request.capacity(), 0);
    long stuck = System.nanoTime() + STUCK_NANOS;
    while (at >= 0) {
      if (!goesOn.getAsBoolean()) {
        return false;
      }
      long now = System.nanoTime();
      if (now - giveUp > 0 || (at == 0 && now - stuck > 0)) {
        return false;
      }
      LockSupport.parkNanos(FULL_PAUSE_NANOS);
      at = writer.write(code, call, request, request.capacity(), at);
    }
    return true;
  }
}
