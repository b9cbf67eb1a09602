package dev.tutti.cuda;

import dev.tutti.BackendException;
import dev.tutti.cuda.access.DriverParts;
import dev.tutti.cuda.access.Facade;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.CudaDrivers;
import dev.tutti.cuda.driver.LinkCalls;
import dev.tutti.cuda.driver.Nvml;
import dev.tutti.cuda.memory.BlockStream;
import dev.tutti.kernels.KernelImage;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The CUDA driver of this process, with its devices. No native code is loaded before the first call
 * of {@link #get}, and no device is touched before {@link #device} is called. All methods may be
 * called from any thread.
 */
public final class Cuda extends Facade<DriverParts> {
  private static @Nullable Cuda shared;

  private final CudaDriver driver;
  private final Supplier<byte[]> image;
  private final CurrentStreams currentStreams;
  private final @Nullable CudaDevice[] devices;
  private boolean closed;

  Cuda(CudaDriver driver, LinkCalls links, Supplier<byte[]> image) {
    super(new DriverParts(driver, links));
    this.driver = driver;
    this.image = image;
    CudaDrivers.requireVersion(driver.devices().driverVersion());
    int count = driver.devices().count();
    if (count == 0) {
      throw new BackendException(
          "the NVIDIA driver finds no GPU that this process may use; CUDA_VISIBLE_DEVICES may be"
              + " hiding them");
    }
    List<String> unusable =
        IntStream.range(0, count)
            .mapToObj(index -> CudaDrivers.unusableDevice(driver.devices(), index))
            .flatMap(Optional::stream)
            .toList();
    if (unusable.size() == count) {
      throw new BackendException(String.join("; ", unusable));
    }
    this.devices = new @Nullable CudaDevice[count];
    this.currentStreams = new CurrentStreams(count);
  }

  /**
   * Returns the driver of this process; the first call loads it.
   *
   * @throws BackendException if CUDA cannot be used here; the message says what is missing
   */
  public static Cuda get() {
    synchronized (Cuda.class) {
      Cuda known = shared;
      if (known == null) {
        known = create();
        shared = known;
      }
      return known;
    }
  }

  static Cuda create() {
    return new Cuda(CudaDrivers.open(), new Nvml(), KernelImage::read);
  }

  /**
   * Returns why CUDA cannot be used here, or empty if it can. Loads the driver if it is present.
   */
  public static Optional<String> unusableReason() {
    Optional<String> missing = CudaDrivers.missing();
    if (missing.isPresent()) {
      return missing;
    }
    try {
      Cuda _ = get();
      return Optional.empty();
    } catch (BackendException e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
  }

  /** Returns the number of devices that this process may use. */
  public int deviceCount() {
    return devices.length;
  }

  /**
   * Returns the device with the given ordinal.
   *
   * @param index the device's ordinal, from 0
   * @throws IndexOutOfBoundsException if there is no such device
   * @throws BackendException if the device is older than compute capability 8.0
   */
  public CudaDevice device(int index) {
    synchronized (devices) {
      if (index < 0 || index >= devices.length) {
        throw new IndexOutOfBoundsException(
            "no device cuda:" + index + "; devices that this process may use: " + devices.length);
      }
      CudaDevice device = devices[index];
      if (device == null) {
        requireOpen();
        CudaDrivers.unusableDevice(driver.devices(), index)
            .ifPresent(
                reason -> {
                  throw new BackendException(reason);
                });
        device = new CudaDevice(Parts.of(this), currentStreams, this::leave, index, image);
        try {
          connect(device);
        } catch (RuntimeException e) {
          disconnect(device);
          device.close();
          throw e;
        }
        devices[index] = device;
      }
      return device;
    }
  }

  /** Enables peer access between a new device and the other devices that this process uses. */
  private void connect(CudaDevice device) {
    for (CudaDevice other : devices) {
      if (other != null) {
        other.allocator().addPeer(device.context());
        other.sharable().addPeer(device.context());
        device.allocator().addPeer(other.context());
        device.sharable().addPeer(other.context());
      }
    }
  }

  /** Makes the other devices forget a device that could not be connected. */
  private void disconnect(CudaDevice device) {
    for (CudaDevice other : devices) {
      if (other != null) {
        other.allocator().removePeer(device.context());
        other.sharable().removePeer(device.context());
      }
    }
  }

  /** Makes every device stop querying a stream for memory that was already freed. */
  private void leave(BlockStream stream) {
    synchronized (devices) {
      for (CudaDevice device : devices) {
        if (device != null) {
          device.allocator().leave(stream);
          device.sharable().leave(stream);
        }
      }
    }
  }

  /** Returns the calling thread's current device, initially device 0. */
  public CudaDevice currentDevice() {
    return device(currentStreams.device());
  }

  /** Returns the calling thread's current stream on its current device. */
  public CudaStream currentStream() {
    return currentDevice().currentStream();
  }

  CudaDriver driver() {
    return driver;
  }

  void requireOpen() {
    synchronized (devices) {
      if (closed) {
        throw new IllegalStateException("the driver was closed");
      }
    }
  }

  /**
   * Releases all stream blocks, waits until the devices are idle, and frees everything that was
   * made here, including tensors. For tests only: otherwise the driver stays open until the process
   * ends.
   */
  void close() {
    synchronized (devices) {
      if (closed) {
        return;
      }
      closed = true;
      Parts.of(this).openBlocks().releaseAll();
      Parts.of(this).sharing().forEach(Runnable::run);
      for (CudaDevice device : devices) {
        if (device != null) {
          device.close();
        }
      }
    }
  }
}
