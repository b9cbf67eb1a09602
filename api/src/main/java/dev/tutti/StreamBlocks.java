package dev.tutti;

import java.time.Duration;

/**
 * Blocks streams of devices for programs of the user (c10d: {@code block_stream}); {@link
 * Work#blockCurrentStream} does it for an operation.
 */
public final class StreamBlocks {
  private StreamBlocks() {}

  /**
   * Blocks the calling thread's current stream of a device, and returns at once. Work that is in
   * the stream already runs; what is enqueued later waits until the block is released.
   *
   * @param device whose current stream
   * @param timeout when the stream is released at the latest, counted from when it gets there; zero
   *     never
   * @return the block; release it by {@link StreamBlock#release} or {@link StreamBlock#close}
   * @throws UnsupportedOperationException if no module on the class path blocks streams of such a
   *     device
   * @throws BackendException if the device cannot be used here
   * @throws IllegalArgumentException if the timeout is negative
   * @throws IndexOutOfBoundsException if there is no such device
   * @throws IllegalStateException if the stream is being recorded into a graph
   */
  public static StreamBlock block(Device device, Duration timeout) {
    return RuntimeLookup.find().streamBlock(device.type()).block(device, timeout);
  }
}
