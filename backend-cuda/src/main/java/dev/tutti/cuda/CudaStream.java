package dev.tutti.cuda;

import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.cuda.access.Facade;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.EventPool;
import dev.tutti.cuda.memory.BlockStream;
import dev.tutti.spi.DeviceStream;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * A queue of work on one device. Any thread may use any stream.
 *
 * <p>As in c10d, each thread has a current stream for each device, initially the default stream,
 * and a current device, initially device 0. Operations go to the current stream of their device.
 */
public final class CudaStream extends Facade<BlockStream> implements DeviceStream {
  private final CudaDevice device;
  private final long handle;

  CudaStream(CudaDevice device, long handle, boolean isForeign) {
    super(new BlockStream(device.context(), device.events(), handle, isForeign));
    this.device = device;
    this.handle = handle;
  }

  /** Returns the representation of this stream that allocators use. */
  BlockStream forBlocks() {
    return Parts.of(this);
  }

  /** Returns the device. */
  public CudaDevice device() {
    return device;
  }

  /** Returns the driver's {@code CUstream}; 0 means the default stream. */
  public long handle() {
    return handle;
  }

  /**
   * Makes this stream the calling thread's current stream, and its device the current device, until
   * the scope is closed.
   */
  public Scope use() {
    return device.currentStreams().enter(this);
  }

  /** {@inheritDoc} Allocates nothing. */
  @Override
  public CudaStream makeCurrent() {
    return device.currentStreams().exchange(this);
  }

  /** Records an event at the current end of this stream's work. */
  public CudaEvent record() {
    return new CudaEvent(device, forBlocks(), device.events().record(handle));
  }

  /**
   * Orders later work in this stream after an event, which may belong to another device.
   *
   * @param event the event to wait for
   */
  public void waitFor(CudaEvent event) {
    Parts.of(event).order(forBlocks());
  }

  /** {@inheritDoc} Allocates nothing in the steady state. */
  @Override
  public void waitFor(DeviceStream earlier) {
    CudaStream other = (CudaStream) earlier;
    if (equals(other)) {
      return;
    }
    EventPool events = other.device.events();
    long event = events.record(other.handle);
    try {
      device.context().enter();
      driver().streams().waitFor(handle, event);
    } finally {
      events.release(event);
    }
  }

  @Override
  public void keep(Tensor tensor) {
    long address = tensor.segment().address();
    device.allocator().keepFor(address, forBlocks());
    device.sharable().keepFor(address, forBlocks());
  }

  /**
   * Returns, without blocking, whether all work in this stream is done; false while the stream is
   * being captured into a graph.
   */
  public boolean isIdle() {
    return device.context().isIdle(handle);
  }

  /** Returns whether work in this stream is being captured into a graph. */
  @Override
  public boolean isCapturing() {
    device.context().enter();
    return driver().streams().isCapturing(handle);
  }

  /**
   * Waits on the host until all work enqueued so far is done.
   *
   * @param timeout the maximum time to wait
   * @throws TuttiException if the work is not done by then
   */
  @Override
  public void await(Duration timeout) {
    try (CudaEvent event = record()) {
      if (!event.awaitReached(System.nanoTime() + TimeUnit.NANOSECONDS.convert(timeout))) {
        throw new TuttiException(this + " did not finish within " + timeout.toMillis() + " ms");
      }
    }
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

  /** The scope in which a stream is current; it must be closed on the thread that opened it. */
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
     * Restores the stream and device that were current before; further calls have no effect.
     *
     * @throws IllegalStateException if called on another thread, or while a nested scope is open
     */
    @Override
    public void close() {
      if (closed) {
        return;
      }
      if (!thread.equals(Thread.currentThread())) {
        throw new IllegalStateException(
            "the scope belongs to thread " + thread.getName() + "; close it there");
      }
      streams.leave(entered, before, deviceBefore);
      closed = true;
    }
  }
}
