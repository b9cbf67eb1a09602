package dev.tutti.spi;

/** A point in a device's stream that the device will reach or has reached. */
public interface DeviceEvent {
  /**
   * Tells, without blocking, whether the device reached it.
   *
   * @throws RuntimeException if the device failed
   */
  boolean isReached();

  /** Orders the calling thread's current stream of the event's device behind it, as c10d does. */
  void orderCurrentStream();

  /**
   * Waits on the host until the device reached it.
   *
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @return whether it was reached by then
   */
  boolean awaitReached(long deadlineNanos);

  /**
   * Says that it was reached and that the operation's group will not ask again, so that a backend
   * may use the object for another point. Not called where a user has the operation's work.
   */
  default void release() {}
}
