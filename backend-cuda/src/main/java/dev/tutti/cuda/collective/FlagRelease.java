package dev.tutti.cuda.collective;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.StreamCalls;
import dev.tutti.spi.Time;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The end of the waits for flags in this rank's memory, once the group has failed: a thread raises
 * all of them again and again, because each wait lowers its own. Thread-safe.
 */
final class FlagRelease {
  private static final System.Logger LOG = System.getLogger(FlagRelease.class.getName());
  private static final long PERIOD_NANOS = TimeUnit.MILLISECONDS.toNanos(2);
  private static final int MOST_STREAMS = 8;

  private final Time time;
  private final CudaDevice device;
  private final long flags;
  private final int count;
  private final int rank;
  private final List<CudaStream> streams = new ArrayList<>();
  private @Nullable Thread thread;
  private boolean closed;

  /**
   * Describes the flags.
   *
   * @param time the time of the group
   * @param device this rank's device
   * @param flags the address of the first flag
   * @param count the number of flags, words of 32 bits
   * @param rank this rank's number
   */
  FlagRelease(Time time, CudaDevice device, long flags, int count, int rank) {
    this.time = time;
    this.device = device;
    this.flags = flags;
    this.count = count;
    this.rank = rank;
  }

  /** Starts to raise the flags. */
  synchronized void start() {
    if (thread == null && !closed) {
      thread = time.start("tutti-release-" + rank, this::run);
    }
  }

  private void run() {
    try {
      Parts.of(device).context().enter();
      while (raise()) {
        time.park(this, PERIOD_NANOS);
      }
    } catch (CudaException e) {
      LOG.log(Level.WARNING, "rank " + rank + ": cannot end the waits on " + device, e);
    }
  }

  private synchronized boolean raise() {
    if (closed) {
      return false;
    }
    CudaStream stream = idleStream();
    StreamCalls calls = Parts.of(device).context().driver().streams();
    for (int i = 0; stream != null && i < count; i++) {
      calls.writeValue(stream.handle(), flags + (long) i * Integer.BYTES, 1);
    }
    return true;
  }

  /** Returns a stream that is not stuck in a hardware queue behind one that waits; or null. */
  private @Nullable CudaStream idleStream() {
    for (CudaStream stream : streams) {
      if (stream.isIdle()) {
        return stream;
      }
    }
    if (streams.size() == MOST_STREAMS) {
      return null;
    }
    CudaStream next = Parts.of(device).takeStream();
    streams.add(next);
    return next;
  }

  /**
   * Stops, and gives the streams back; nothing may wait for the flags anymore.
   *
   * @param deadlineNanos the deadline, in terms of the group's time
   * @return false if flags may still be written after the deadline
   */
  synchronized boolean stop(long deadlineNanos) {
    closed = true;
    for (CudaStream stream : streams) {
      while (!stream.isIdle()) {
        if (time.nanoTime() - deadlineNanos > 0) {
          return false;
        }
        Thread.onSpinWait();
      }
    }
    streams.forEach(Parts.of(device)::giveStream);
    streams.clear();
    return true;
  }
}
