package dev.tutti.cuda;

import dev.tutti.BackendException;
import dev.tutti.TuttiException;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.EventPool;
import dev.tutti.cuda.memory.BlockStream;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * A queue of work of one device. Any thread may use any stream.
 *
 * <p>As in c10d each thread has a current stream for each device, at first the default one, and a
 * current device, at first number 0. Operations go to the current stream of their device.
 */
public final class CudaStream {
  private final CudaDevice device;
  private final long handle;
  private final BlockStream forBlocks;

  CudaStream(CudaDevice device, long handle, boolean isForeign) {
    this.device = device;
    this.handle = handle;
    this.forBlocks = new BlockStream(device.context(), device.events(), handle, isForeign);
  }

  /** Returns what allocators know the stream by. */
  BlockStream forBlocks() {
    return forBlocks;
  }

  /** Returns the device. */
  public CudaDevice device() {
    return device;
  }

  /** Returns the driver's {@code CUstream}; 0 is the default stream. */
  public long handle() {
    return handle;
  }

  /**
   * Makes this the calling thread's current stream, and its device the current one, until the scope
   * is closed.
   */
  public Scope use() {
    return device.owner().currentStreams().enter(this);
  }

  /** Marks where the stream is now. */
  public CudaEvent record() {
    device.context().enter();
    EventPool pool = device.events();
    long event = pool.acquire();
    try {
      driver().events().record(event, handle);
    } catch (RuntimeException e) {
      pool.release(event);
      throw e;
    }
    return new CudaEvent(device, pool, this, event);
  }

  /**
   * Orders what comes later in this stream behind an event, also of another device.
   *
   * @param event the event
   */
  public void waitFor(CudaEvent event) {
    event.order(this);
  }

  /**
   * Tells, without blocking, whether all work in this stream is done; false while it is recorded
   * into a graph.
   */
  public boolean isIdle() {
    return device.context().isIdle(handle);
  }

  /** Tells whether work in this stream is being recorded into a graph. */
  public boolean isCapturing() {
    device.context().enter();
    return driver().streams().isCapturing(handle);
  }

  /**
   * Waits on the host until all work so far is done.
   *
   * @param timeout the longest wait from now
   * @throws TuttiException if it is not done by then
   */
  public void await(Duration timeout) {
    try (CudaEvent event = record()) {
      if (!event.awaitReached(System.nanoTime() + TimeUnit.NANOSECONDS.convert(timeout))) {
        throw new TuttiException(this + " is not done after " + timeout.toMillis() + " ms");
      }
    }
  }

  /** Waits until all work so far is done; false if it is not by then, or the device failed. */
  boolean awaitIdle(long deadlineNanos) {
    try (CudaEvent event = record()) {
      return event.awaitReached(deadlineNanos);
    } catch (BackendException e) {
      return false;
    }
  }

  /** Copies between addresses of the device, whose context is the calling thread's. */
  void copy(long to, long from, long bytes) {
    driver().streams().copy(to, from, bytes, handle);
  }

  private CudaDriver driver() {
    return device.context().driver();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof CudaStream stream && stream.device == device && stream.handle == handle;
  }

  @Override
  public int hashCode() {
    return Long.hashCode(handle) * 31 + device.index();
  }

  @Override
  public String toString() {
    return handle == 0
        ? "default stream of " + device
        : "stream 0x" + Long.toHexString(handle) + " of " + device;
  }

  /** The time in which a stream is current; closed on the thread that opened it. */
  public static final class Scope implements AutoCloseable {
    private final CurrentStreams streams;
    private final Thread thread = Thread.currentThread();
    private final CudaStream entered;
    private final CudaStream before;
    private final int deviceBefore;
    private boolean closed;

    Scope(CurrentStreams streams, CudaStream entered, CudaStream before, int deviceBefore) {
      this.streams = streams;
      this.entered = entered;
      this.before = before;
      this.deviceBefore = deviceBefore;
    }

    /**
     * Makes current what was before; the second and later calls do nothing.
     *
     * @throws IllegalStateException on another thread, or while a scope inside is open
     */
    @Override
    public void close() {
      if (closed) {
        return;
      }
      if (!thread.equals(Thread.currentThread())) {
        throw new IllegalStateException(
            "the scope belongs to thread " + thread.getName() + ", close it there");
      }
      streams.leave(entered, before, deviceBefore);
      closed = true;
    }
  }
}
