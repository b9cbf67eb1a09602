package dev.tutti.cuda.access;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.StreamCalls;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/**
 * Keeps streams of the highest priority that have one user each. To make one may wait for all
 * kernels of the device, so who runs kernels that wait takes its streams before. Any thread may
 * call any method.
 */
public final class StreamReserve {
  private final CudaDevice device;
  private final ArrayDeque<CudaStream> free = new ArrayDeque<>();
  private boolean closed;

  public StreamReserve(CudaDevice device) {
    this.device = device;
  }

  /** Makes streams until so many are free. */
  public void ensure(int count) {
    while (freeCount() < count) {
      give(make());
    }
  }

  private synchronized int freeCount() {
    requireOpen();
    return free.size();
  }

  /** Returns a stream that nobody else has; not one of the pool. */
  public CudaStream take() {
    CudaStream stream;
    synchronized (this) {
      requireOpen();
      stream = free.pollFirst();
    }
    return stream == null ? make() : stream;
  }

  /** Returns so many of them, or takes none if it cannot. */
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

  /** Makes a stream, outside of the monitor, so that who has one to give does not wait for it. */
  private CudaStream make() {
    DeviceContext context = access().context(device);
    context.enter();
    StreamCalls calls = context.driver().streams();
    return access().stream(device, calls.create(calls.highestPriority()), false);
  }

  /** Takes a stream back in which nothing runs. */
  public synchronized void give(CudaStream stream) {
    if (closed) {
      destroy(stream);
    } else {
      free.addLast(stream);
    }
  }

  private void destroy(CudaStream stream) {
    access().context(device).enter();
    access().context(device).driver().streams().destroy(stream.handle());
  }

  /** Destroys the free streams, and from now on each one that is given back. */
  public synchronized void close() {
    closed = true;
    while (!free.isEmpty()) {
      destroy(free.removeFirst());
    }
  }
}
