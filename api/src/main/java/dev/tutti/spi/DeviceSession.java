package dev.tutti.spi;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Incubating;
import dev.tutti.Tensor;
import java.lang.foreign.Arena;
import java.time.Duration;

/**
 * A thread's use of a device, on a stream of its own that is the thread's current one, for programs
 * that serve any device, such as {@code tutti bench}. Used and closed by the thread that opened it.
 */
@Incubating
public interface DeviceSession extends AutoCloseable {
  /** Returns the device. */
  Device device();

  /**
   * Allocates memory of any content.
   *
   * @param arena owns the memory; closed when the device is done with it
   * @param dtype element type
   * @param shape sizes in elements
   */
  Tensor allocate(Arena arena, DType dtype, long... shape);

  /**
   * Copies to the device, behind the work of the stream.
   *
   * @param target contiguous, on the device
   * @param host contiguous, on the host, of the same type and number of elements; may be changed as
   *     soon as this returns
   */
  void copyFromHost(Tensor target, Tensor host);

  /**
   * Copies from the device, behind the work of the stream, and waits for it.
   *
   * @param host contiguous, on the host
   * @param source contiguous, on the device, of the same type and number of elements
   */
  void copyToHost(Tensor host, Tensor source);

  /**
   * Runs work and waits until the device has done what it put into the stream.
   *
   * @param work calls operations
   * @param limit the longest wait
   * @return the time from the stream's start of the work to its end, by the device's clock
   * @throws dev.tutti.TuttiException if it is not done by then
   */
  Duration time(Runnable work, Duration limit);

  /**
   * Records what work puts into the stream, without doing it.
   *
   * @param work calls operations
   * @throws UnsupportedOperationException if it does what cannot be recorded
   */
  Recording record(Runnable work);

  /** Leaves the stream; what was recorded must be closed before. */
  @Override
  void close();

  /** Work that a stream does again and again (a CUDA graph). */
  interface Recording extends AutoCloseable {
    /** Puts the work into the session's stream once more. */
    void replay();

    /** Frees it; the device must be done with it. */
    @Override
    void close();
  }
}
