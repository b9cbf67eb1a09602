package dev.tutti.cuda.driver;

/** The driver calls that create streams and put copies and waits into them. */
public interface StreamCalls {
  /** The stream that every context has; it waits for all blocking streams. */
  long DEFAULT = 0;

  /** Returns the highest priority of streams in the current context, which is the lowest number. */
  int highestPriority();

  /**
   * Creates a stream that does not wait for the default stream.
   *
   * @param priority a driver priority; 0 is the lowest
   */
  long create(int priority);

  /** Destroys a stream; work already in it still completes. */
  void destroy(long stream);

  /**
   * Returns, without blocking, whether all work in a stream is done. Allocates nothing. Invalidates
   * captures that do not allow the query; see {@link DeviceContext#isIdle}.
   */
  boolean isIdle(long stream);

  /** Waits on the host, without a deadline, until all work in a stream is done. */
  void synchronize(long stream);

  /** Orders later work in a stream after an event. Allocates nothing. */
  void waitFor(long stream, long event);

  /** Copies between any two addresses that the device can access. Allocates nothing. */
  void copy(long target, long source, long bytes, long stream);

  /** Sets bytes. Allocates nothing. */
  void fill(long target, byte value, long bytes, long stream);

  /** Writes a word after all earlier work in the stream, visible to all. Allocates nothing. */
  void writeValue(long stream, long target, int value);

  /**
   * Holds a stream until a word is at least the given value, compared as wrapping signed numbers.
   */
  void waitValue(long stream, long source, int value);

  /**
   * Returns whether work in a stream is being captured instead of executed; also true of the
   * default stream while a stream is being captured that it synchronizes with.
   */
  boolean isCapturing(long stream);
}
