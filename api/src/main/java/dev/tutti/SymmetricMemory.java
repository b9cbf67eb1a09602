package dev.tutti;

import java.time.Duration;

/**
 * Gives each rank of a host-local group access to a buffer of equal size of every rank (c10d:
 * {@code SymmetricMemory}).
 *
 * {@snippet file="GroupSnippetsTest.java" region="symmetric"}
 *
 * <p>Beside its buffer each rank has a signal pad: words that are zero between uses. A channel is
 * an independent set of them, so that operations of different streams or threads do not meet.
 *
 * <p>An interrupt ends no wait, as {@link ProcessGroup} says, and leaves the thread interrupted.
 *
 * <p>{@link ProcessGroup#allocateSymmetric} makes it. All methods may be called from any thread,
 * but one thread of a rank at a time uses a channel. Waits end with a {@link TuttiException} when
 * the group fails, a {@link GroupClosedException} when this rank closes the memory or the group; a
 * wait that ended in this way, or at its deadline, counts for nothing.
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
   * Views the buffer of a rank.
   *
   * @param rank whose
   * @param dtype element type
   * @param byteOffset where the view begins, a multiple of the element size
   * @param shape sizes in elements
   * @throws IndexOutOfBoundsException if the view leaves the buffer
   * @throws IllegalArgumentException if the offset is not aligned or the rank does not exist
   * @throws GroupClosedException if this rank closed the memory; views made before throw the {@link
   *     IllegalStateException} of their segment when they are read or written
   */
  Tensor buffer(int rank, DType dtype, long byteOffset, long... shape);

  /**
   * Waits until every rank came to the same channel's barrier; data written before is visible
   * after.
   *
   * @param channel from 0 to {@link #channels()} - 1
   * @param timeout the deadline from now; on a device it runs from the kernel's start
   * @throws CollectiveTimeoutException if a rank does not come by then
   */
  void barrier(int channel, Duration timeout);

  /**
   * Raises a rank's signal; waits while an earlier one is not yet consumed.
   *
   * @param rank whose
   * @param channel from 0
   * @param timeout the deadline from now
   * @throws CollectiveTimeoutException if the earlier signal stays by then
   */
  void putSignal(int rank, int channel, Duration timeout);

  /**
   * Waits for a signal of a rank and consumes it.
   *
   * @param rank whose
   * @param channel from 0
   * @param timeout the deadline from now
   * @throws CollectiveTimeoutException if no signal comes by then
   */
  void waitSignal(int rank, int channel, Duration timeout);

  /** Tells whether the device can write to all buffers at once. */
  boolean hasMulticast();

  /** Frees this rank's buffer and its view of the others; the second and later calls do nothing. */
  @Override
  void close();
}
