package dev.tutti.cuda.driver;

/** Makes streams and puts copies and waits into them. */
public interface StreamCalls {
  /** The stream that every context has, and that waits for all blocking streams. */
  long DEFAULT = 0;

  /**
   * Returns the highest priority that streams of the current context can have: the least number.
   */
  int highestPriority();

  /**
   * Makes a stream that does not wait for the default one.
   *
   * @param priority a number of the driver's; 0 is the lowest
   */
  long create(int priority);

  /** Destroys a stream; work in it continues. */
  void destroy(long stream);

  /**
   * Tells, without blocking, whether all work in a stream is done. Allocates nothing. Ends
   * recordings that do not allow it; see {@link DeviceContext#isIdle}.
   */
  boolean isIdle(long stream);

  /** Waits on the host, without a deadline, until all work in a stream is done. */
  void synchronize(long stream);

  /** Orders what comes later in a stream behind an event. Allocates nothing. */
  void waitFor(long stream, long event);

  /** Copies between any two addresses that the device knows. Allocates nothing. */
  void copy(long target, long source, long bytes, long stream);

  /** Sets bytes. Allocates nothing. */
  void fill(long target, byte value, long bytes, long stream);

  /** Writes a word behind all earlier work, visible to all. Allocates nothing. */
  void writeValue(long stream, long target, int value);

  /** Holds a stream until a word is at least a number, in the sense of wrapping signed numbers. */
  void waitValue(long stream, long source, int value);

  /**
   * Tells whether work in a stream is being recorded instead of done; also of the default stream
   * while one is recorded that waits for it.
   */
  boolean isCapturing(long stream);
}
