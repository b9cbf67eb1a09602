package dev.tutti.spi;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Incubating;
import dev.tutti.Tensor;
import java.lang.foreign.Arena;
import java.time.Duration;

/**
 * A thread's use of a device, with a stream of its own as the thread's current one, for programs
 * that work with any device, such as {@code tutti bench}. Only the thread that opened a session may
 * use and close it.
 */
@Incubating
public interface DeviceSession extends AutoCloseable {
  /** Returns the device. */
  Device device();

  /**
   * Allocates uninitialized memory.
   *
   * @param arena the arena that owns the memory, to be closed when the device is done with it
   * @param dtype the element type
   * @param shape the sizes in elements
   */
  Tensor allocate(Arena arena, DType dtype, long... shape);

  /**
   * Copies to the device, after the work already in the stream.
   *
   * @param target a contiguous tensor on the device
   * @param host a contiguous tensor on the host, of the same type and number of elements; it may be
   *     changed as soon as this method returns
   */
  void copyFromHost(Tensor target, Tensor host);

  /**
   * Copies from the device, after the work already in the stream, and waits for the copy.
   *
   * @param host a contiguous tensor on the host
   * @param source a contiguous tensor on the device, of the same type and number of elements
   */
  void copyToHost(Tensor host, Tensor source);

  /**
   * Runs work, and waits until the device has done what the work put into the stream.
   *
   * @param work the work, which calls operations
   * @param limit the maximum time to wait
   * @return the time from when the stream starts the work to when the work ends, by the device's
   *     clock
   * @throws dev.tutti.TuttiException if the work is not done within the limit
   */
  Duration time(Runnable work, Duration limit);

  /**
   * Records what the work puts into the stream, without executing it.
   *
   * @param work the work, which calls operations
   * @throws UnsupportedOperationException if the work does something that cannot be recorded
   */
  Recording record(Runnable work);

  /** Leaves the stream; recordings must be closed first. */
  @Override
  void close();

  /** Work that a stream can execute repeatedly (a CUDA graph). */
  interface Recording extends AutoCloseable {
    /** Puts the work into the session's stream once more. */
    void replay();

    /** Frees the recording; the device must be done with it. */
    @Override
    void close();
  }
}
