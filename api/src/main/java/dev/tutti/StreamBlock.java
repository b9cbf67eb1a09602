package dev.tutti;

import java.time.Duration;

/**
 * A block on a device stream, which holds the stream until it is released (c10d: {@code
 * StreamBlock}). To block a stream until an operation ends, use {@link Work#blockCurrentStream}.
 *
 * <p>The stream that is current when the block is created is blocked from then on, until {@link
 * #release()} is called. Any thread may call any method. The block may be closed before the stream
 * reaches it; closing a block that was never released releases it.
 */
@Incubating
public interface StreamBlock extends AutoCloseable {
  /**
   * Blocks the calling thread's current stream of a device, and returns at once (c10d: {@code
   * block_stream}). Work already in the stream still runs; work enqueued later waits until the
   * block is released.
   *
   * @param device the device whose current stream is blocked
   * @param timeout the time after which the stream is released at the latest, counted from when the
   *     stream reaches the block; zero means never
   * @throws UnsupportedOperationException if no module on the class path can block streams of such
   *     a device
   * @throws BackendException if the device cannot be used here
   * @throws IllegalArgumentException if the timeout is negative
   * @throws IndexOutOfBoundsException if there is no such device
   * @throws IllegalStateException if the stream is being captured into a graph
   */
  static StreamBlock block(Device device, Duration timeout) {
    return RuntimeLookup.find().streamBlock(device.type()).block(device, timeout);
  }

  /** Returns the status that the device last reported. */
  StreamBlockStatus status();

  /** Releases the stream (c10d: {@code abort}); further calls have no effect. */
  void release();

  /** Releases the stream and discards the block, without waiting for the device. */
  @Override
  void close();
}
