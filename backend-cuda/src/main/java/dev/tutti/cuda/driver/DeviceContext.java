package dev.tutti.cuda.driver;

import java.util.function.Supplier;

/** A device's primary context. All methods may be called from any thread. */
public final class DeviceContext implements AutoCloseable {
  private final CudaDriver driver;
  private final int device;
  private final long context;

  /**
   * Retains the context; creates it if no library in the process has done so.
   *
   * @param driver the driver
   * @param device the device's ordinal
   */
  public DeviceContext(CudaDriver driver, int device) {
    this.driver = driver;
    this.device = device;
    this.context = driver.contexts().retainPrimary(device);
  }

  /** Returns the device's ordinal. */
  public int device() {
    return device;
  }

  /** Returns the driver. */
  public CudaDriver driver() {
    return driver;
  }

  /** Returns the driver's handle. */
  public long handle() {
    return context;
  }

  /**
   * Makes this the calling thread's current context, and leaves it current: other libraries set
   * theirs themselves. Allocates nothing, and costs half as much as querying the current context.
   */
  public void enter() {
    driver.contexts().setCurrent(context);
  }

  /**
   * Returns, without blocking, whether the last record of an event was reached, even during graph
   * capture: a plain query would invalidate the captures of threads in a stricter capture mode. The
   * event must not have been recorded into a graph itself. Enters the context; allocates nothing.
   */
  public boolean isReached(long event) {
    enter();
    int before = driver.graphs().exchangeMode(GraphCalls.RELAXED);
    try {
      return driver.events().isReached(event);
    } finally {
      driver.graphs().exchangeMode(before);
    }
  }

  /**
   * Returns, without blocking, whether all work in a stream is done; false for a stream that is
   * being captured into a graph. Invalidates no capture. Enters the context; allocates nothing.
   */
  public boolean isIdle(long stream) {
    enter();
    int before = driver.graphs().exchangeMode(GraphCalls.RELAXED);
    try {
      return !driver.streams().isCapturing(stream) && driver.streams().isIdle(stream);
    } finally {
      driver.graphs().exchangeMode(before);
    }
  }

  /**
   * Makes a call in this context, in the relaxed capture mode, which the driver requires for the
   * call during graph capture.
   */
  public <T> T callRelaxed(Supplier<T> call) {
    enter();
    int before = driver.graphs().exchangeMode(GraphCalls.RELAXED);
    try {
      return call.get();
    } finally {
      driver.graphs().exchangeMode(before);
    }
  }

  /** Releases the context. Must be called once, when nothing on the device is in use anymore. */
  @Override
  public void close() {
    driver.contexts().releasePrimary(device);
  }
}
