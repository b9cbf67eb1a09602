package dev.tutti.cuda.driver;

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

  /** Gives the context up. Called once, when nothing of the device is used any more. */
  @Override
  public void close() {
    driver.contexts().releasePrimary(device);
  }
}
