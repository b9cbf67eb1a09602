package dev.tutti.spi;

/** A point in a device's stream that the device has reached or will reach. */
public interface DeviceEvent {
  /**
   * Returns, without blocking, whether the device has reached the point.
   *
   * @throws RuntimeException if the device failed
   */
  boolean isReached();

  /**
   * Orders the calling thread's current stream of the event's device after this point, as c10d
   * does.
   */
  void orderCurrentStream();

  /**
   * Waits on the host until the device has reached the point.
   *
   * @param deadlineNanos the deadline, in terms of the group's clock
   * @return whether the point was reached by the deadline
   */
  boolean awaitReached(long deadlineNanos);

  /**
   * Called when the point has been reached and the operation's group will not query it again, so
   * that a backend may reuse the object for another point. Not called while a user holds the
   * operation's work.
   */
  default void release() {}
}
