package dev.tutti.cuda.driver;

import java.util.function.Supplier;

/** Holds a device's primary context. Any thread may call any method. */
public final class DeviceContext implements AutoCloseable {
  private final CudaDriver driver;
  private final int device;
  private final long context;

  /**
   * Retains the context; made if no library of the process has made it.
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
   * Makes this the calling thread's context, and leaves it so: other libraries set theirs
   * themselves. Allocates nothing, and costs half of what it costs to ask for the current one.
   */
  public void enter() {
    driver.contexts().setCurrent(context);
  }

  /**
   * Tells, without blocking, whether the last record of an event was reached, also while streams
   * are recorded into graphs: the driver would end the recordings of threads that may not be
   * disturbed. The event was not recorded into a graph itself. Enters the context; allocates
   * nothing.
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
   * Tells, without blocking, whether all work in a stream is done; false for one that is being
   * recorded into a graph. Disturbs no recording. Enters the context; allocates nothing.
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

  /** Makes a call in the context that the driver allows while streams are recorded only so. */
  public <T> T callRelaxed(Supplier<T> call) {
    enter();
    int before = driver.graphs().exchangeMode(GraphCalls.RELAXED);
    try {
      return call.get();
    } finally {
      driver.graphs().exchangeMode(before);
    }
  }

  /** Gives the context up. Called once, when nothing of the device is used any more. */
  @Override
  public void close() {
    driver.contexts().releasePrimary(device);
  }
}
