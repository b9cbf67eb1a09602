package dev.tutti.cuda.access;

import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.StreamCalls;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/**
 * A reserve of highest-priority streams that have one user each. Creating a stream may wait for all
 * kernels on the device, so code that runs waiting kernels takes its streams beforehand. All
 * methods may be called from any thread.
 */
public final class StreamReserve {
  /** The number of streams that are made at first: enough for the messages of 8 ranks, plus 9. */
  public static final int FIRST = 24;

  private final DeviceParts device;
  private final ArrayDeque<CudaStream> free = new ArrayDeque<>();
  private boolean closed;

  StreamReserve(DeviceParts device) {
    this.device = device;
  }

  /** Creates streams until the given number of them are free. */
  public void ensure(int count) {
    while (freeCount() < count) {
      give(make());
    }
  }

  private synchronized int freeCount() {
    requireOpen();
    return free.size();
  }

  /** Returns a stream for exclusive use; it is not one of the device's pool. */
  public CudaStream take() {
    CudaStream stream;
    synchronized (this) {
      requireOpen();
      stream = free.pollFirst();
    }
    return stream == null ? make() : stream;
  }

  /** Returns the given number of streams, or takes none if it fails. */
  public List<CudaStream> take(int count) {
    List<CudaStream> taken = new ArrayList<>(count);
    try {
      while (taken.size() < count) {
        taken.add(take());
      }
      return taken;
    } catch (RuntimeException e) {
      taken.forEach(this::give);
      throw e;
    }
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("the device was closed");
    }
  }

  /**
   * Creates a stream outside the monitor, so that threads that give streams back do not wait for
   * it.
   */
  private CudaStream make() {
    DeviceContext context = device.context();
    context.enter();
    StreamCalls calls = context.driver().streams();
    return device.owner().stream(calls.create(calls.highestPriority()));
  }

  /** Takes back a stream in which no work runs. */
  public synchronized void give(CudaStream stream) {
    if (closed) {
      destroy(stream);
    } else {
      free.addLast(stream);
    }
  }

  private void destroy(CudaStream stream) {
    device.context().enter();
    device.context().driver().streams().destroy(stream.handle());
  }

  /** Destroys the free streams and, from then on, every stream that is given back. */
  public synchronized void close() {
    closed = true;
    while (!free.isEmpty()) {
      destroy(free.removeFirst());
    }
  }
}
