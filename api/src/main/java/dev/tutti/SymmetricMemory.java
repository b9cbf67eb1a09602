package dev.tutti;

import java.time.Duration;

/**
 * Buffers of equal size, one on each rank of a host-local group, that every rank can access (c10d:
 * {@code SymmetricMemory}).
 *
 * {@snippet file="GroupSnippetsTest.java" region="symmetric"}
 *
 * <p>Besides its buffer, each rank has a signal pad: words that are zero between uses. A channel is
 * an independent set of these words, so that operations on different streams or threads do not
 * interfere.
 *
 * <p>An interrupt does not end a wait, as described in {@link ProcessGroup}, and leaves the thread
 * interrupted.
 *
 * <p>{@link ProcessGroup#allocateSymmetric} creates it. All methods may be called from any thread,
 * but only one thread of a rank at a time may use a given channel. A wait ends with a {@link
 * TuttiException} when the group fails, and with a {@link GroupClosedException} when this rank
 * closes the memory or the group. A wait that ended in this way, or at its deadline, has no effect
 * on the state of the channel.
 */
@Incubating
public interface SymmetricMemory extends AutoCloseable {
  /** Returns this rank in the group. */
  int rank();

  /** Returns the number of ranks. */
  int size();

  /** Returns the device that holds the buffers. */
  Device device();

  /** Returns the size of each rank's buffer in bytes. */
  long bufferByteSize();

  /** Returns the number of channels of the signal pad. */
  int channels();

  /**
   * Returns a view of a rank's buffer.
   *
   * @param rank the rank whose buffer to view
   * @param dtype the element type
   * @param byteOffset the offset at which the view begins, a multiple of the element size
   * @param shape the sizes in elements
   * @throws IndexOutOfBoundsException if the view extends beyond the buffer
   * @throws IllegalArgumentException if the offset is not aligned or the rank does not exist
   * @throws GroupClosedException if this rank closed the memory; views created earlier throw the
   *     {@link IllegalStateException} of their segment when they are read or written
   */
  Tensor buffer(int rank, DType dtype, long byteOffset, long... shape);

  /**
   * Waits until every rank has reached the barrier of the same channel; data written before the
   * barrier is visible after it.
   *
   * @param channel the channel, from 0 to {@link #channels()} - 1
   * @param timeout the time allowed from now; on a device, from the start of the kernel
   * @throws CollectiveTimeoutException if a rank does not come by the deadline
   */
  void barrier(int channel, Duration timeout);

  /**
   * Raises a signal for a rank, waiting as long as an earlier one has not been consumed.
   *
   * @param rank the rank to signal
   * @param channel the channel, starting at 0
   * @param timeout the time allowed from now
   * @throws CollectiveTimeoutException if the earlier signal has not been consumed by the deadline
   */
  void putSignal(int rank, int channel, Duration timeout);

  /**
   * Waits for a signal from a rank and consumes it.
   *
   * @param rank the rank that sends the signal
   * @param channel the channel, starting at 0
   * @param timeout the time allowed from now
   * @throws CollectiveTimeoutException if no signal comes by the deadline
   */
  void waitSignal(int rank, int channel, Duration timeout);

  /** Returns whether the device can write to all buffers at once. */
  boolean hasMulticast();

  /** Frees this rank's buffer and its view of the others; further calls have no effect. */
  @Override
  void close();
}
