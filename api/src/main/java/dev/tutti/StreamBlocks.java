package dev.tutti;

import java.time.Duration;

/**
 * Static methods that block streams of devices for user programs (c10d: {@code block_stream}); to
 * block a stream until an operation ends, use {@link Work#blockCurrentStream}.
 */
public final class StreamBlocks {
  private StreamBlocks() {}

  /**
   * Blocks the calling thread's current stream of a device, and returns at once. Work already in
   * the stream still runs; work enqueued later waits until the block is released.
   *
   * @param device the device whose current stream is blocked
   * @param timeout the time after which the stream is released at the latest, counted from when the
   *     stream reaches the block; zero means never
   * @return the block, which {@link StreamBlock#release} or {@link StreamBlock#close} releases
   * @throws UnsupportedOperationException if no module on the class path can block streams of such
   *     a device
   * @throws BackendException if the device cannot be used here
   * @throws IllegalArgumentException if the timeout is negative
   * @throws IndexOutOfBoundsException if there is no such device
   * @throws IllegalStateException if the stream is being captured into a graph
   */
  public static StreamBlock block(Device device, Duration timeout) {
    return RuntimeLookup.find().streamBlock(device.type()).block(device, timeout);
  }
}
