package dev.tutti.spi;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Incubating;
import dev.tutti.Tensor;
import java.lang.foreign.Arena;
import java.util.Optional;

/**
 * A provider of tensors on a kind of device, found by {@link java.util.ServiceLoader}, for code
 * that works with any device, such as buckets of gradients and checkpoints. All methods may be
 * called from any thread; work goes to the calling thread's current stream on the device.
 */
@Incubating
public interface DeviceTensors {
  /** The version of this interface, raised when a change would break existing providers. */
  int SPI_VERSION = 2;

  /**
   * Returns the {@link #SPI_VERSION} that the provider was compiled against. Write {@code return
   * SPI_VERSION;}, so that the compiler copies the number.
   */
  int spiVersion();

  /** Returns the kind of device, such as {@code cuda}. */
  String deviceType();

  /**
   * Allocates uninitialized memory.
   *
   * @param arena the arena that owns the memory; closing it need not wait for the current stream
   * @param device a device of this kind
   * @param dtype the element type
   * @param shape the sizes in elements
   * @throws dev.tutti.BackendException if the device cannot be used here or has no memory left
   */
  Tensor allocate(Arena arena, Device device, DType dtype, long... shape);

  /**
   * Sets all elements to zero.
   *
   * @param tensor a contiguous tensor on a device of this kind
   */
  void zero(Tensor tensor);

  /**
   * Copies elements in row-major order, and converts them where the types differ.
   *
   * @param target a tensor on a device of this kind, with any strides
   * @param source a tensor on the same device with the same number of elements, of the same type,
   *     or of float32, float64, float16 or bfloat16 if the target is of one of these
   * @throws IllegalArgumentException if numbers of elements differ or types cannot be converted
   */
  void copy(Tensor target, Tensor source);

  /**
   * Copies a tensor to the host, after the work in the current stream, and waits for the copy.
   *
   * @param host a contiguous host tensor of the same type and number of elements
   * @param source a contiguous tensor on a device of this kind
   */
  void copyToHost(Tensor host, Tensor source);

  /**
   * Copies a tensor from the host, in the current stream; when it returns, the host tensor may be
   * modified.
   *
   * @param target a contiguous tensor on a device of this kind
   * @param host a contiguous host tensor of the same type and number of elements
   */
  void copyFromHost(Tensor target, Tensor host);

  /**
   * Returns the calling thread's current stream of a device.
   *
   * @param device a device of this kind
   * @throws UnsupportedOperationException if {@link #takeStream} returns no streams
   */
  default DeviceStream currentStream(Device device) {
    throw new UnsupportedOperationException("no streams of " + device);
  }

  /**
   * Returns a stream of high priority that nobody else uses, for communication beside computation;
   * empty if there are none, if another caller has it, or if streams of this process may wait for
   * each other.
   *
   * @param device a device of this kind
   */
  default Optional<DeviceStream> takeStream(Device device) {
    return Optional.empty();
  }

  /**
   * Takes back a stream from {@link #takeStream}. Waits a few seconds for the work in it; if that
   * is not done then, no stream is handed out again.
   *
   * @param stream the stream, which the caller must not use afterwards
   */
  default void giveStream(DeviceStream stream) {
    throw new UnsupportedOperationException("no streams of " + deviceType());
  }

  /**
   * Returns steps of an optimizer on a device; empty if there are none, which is the default.
   *
   * @param device a device of this kind
   */
  default Optional<DeviceUpdates> updates(Device device) {
    return Optional.empty();
  }

  /**
   * Returns the provider for a kind of device, which the thread's context class loader or that of
   * Tutti offers.
   *
   * @param deviceType the kind, such as {@code cuda}
   * @return the provider, or empty if there is none
   * @throws dev.tutti.BackendException if it was compiled against another version of this interface
   */
  static Optional<DeviceTensors> find(String deviceType) {
    return DeviceTensorsLookup.find(deviceType);
  }
}
