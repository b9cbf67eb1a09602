package dev.tutti.cuda.access;

import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.StreamCalls;
import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/**
 * A reserve of highest-priority streams that have one user each. Creating a stream may wait for all
 * kernels on the device, so code that runs waiting kernels takes its streams beforehand. All
 * methods may be called from any thread.
 */
public final class StreamReserve {
  /** The number of streams that are made at first: enough for the messages of 8 ranks, plus 9. */
  public static final int FIRST = 24;

  private final DeviceContext context;
  private final ArrayDeque<Long> free = new ArrayDeque<>();
  private boolean closed;

  StreamReserve(DeviceContext context) {
    this.context = context;
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

  /** Returns the handle of a stream for exclusive use; it is not one of the device's pool. */
  long take() {
    @Nullable Long handle;
    synchronized (this) {
      requireOpen();
      handle = free.pollFirst();
    }
    return handle == null ? make() : handle;
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
  private long make() {
    context.enter();
    StreamCalls calls = context.driver().streams();
    return calls.create(calls.highestPriority());
  }

  /** Takes back a stream in which no work runs. */
  synchronized void give(long handle) {
    if (closed) {
      destroy(handle);
    } else {
      free.addLast(handle);
    }
  }

  private void destroy(long handle) {
    context.enter();
    context.driver().streams().destroy(handle);
  }

  /** Destroys the free streams and, from then on, every stream that is given back. */
  public synchronized void close() {
    closed = true;
    while (!free.isEmpty()) {
      destroy(free.removeFirst());
    }
  }
}
