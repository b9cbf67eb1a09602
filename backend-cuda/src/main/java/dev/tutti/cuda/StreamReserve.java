package dev.tutti.cuda;

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
final class StreamReserve {
  private final CudaDevice device;
  private final ArrayDeque<CudaStream> free = new ArrayDeque<>();
  private boolean closed;

  StreamReserve(CudaDevice device) {
    this.device = device;
  }

  /** Makes streams until so many are free. */
  void ensure(int count) {
    while (freeCount() < count) {
      give(make());
    }
  }

  private synchronized int freeCount() {
    requireOpen();
    return free.size();
  }

  /** Returns a stream that nobody else has; not one of the pool. */
  CudaStream take() {
    CudaStream stream;
    synchronized (this) {
      requireOpen();
      stream = free.pollFirst();
    }
    return stream == null ? make() : stream;
  }

  /** Returns so many of them, or takes none if it cannot. */
  List<CudaStream> take(int count) {
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
    DeviceContext context = device.context();
    context.enter();
    StreamCalls calls = context.driver().streams();
    return new CudaStream(device, calls.create(calls.highestPriority()), false);
  }

  /** Takes a stream back in which nothing runs. */
  synchronized void give(CudaStream stream) {
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

  /** Destroys the free streams, and from now on each one that is given back. */
  synchronized void close() {
    closed = true;
    while (!free.isEmpty()) {
      destroy(free.removeFirst());
    }
  }
}
