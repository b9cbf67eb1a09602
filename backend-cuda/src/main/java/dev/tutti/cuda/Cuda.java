package dev.tutti.cuda;

import dev.tutti.BackendException;
import dev.tutti.cuda.access.CudaAccess;
import dev.tutti.cuda.access.KernelLoader;
import dev.tutti.cuda.block.OpenBlocks;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.CudaDrivers;
import dev.tutti.cuda.driver.LinkCalls;
import dev.tutti.cuda.driver.LinkMatrix;
import dev.tutti.cuda.memory.BlockStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;

/**
 * The CUDA driver of this process with its devices. Nothing native loads before {@link #get} is
 * called, and no device is touched before {@link #device} is. Any thread may call any method.
 */
public final class Cuda {
  static {
    CudaAccess.provide(new Internals());
  }

  private static @Nullable Cuda shared;

  private final CudaDriver driver;
  private final LinkCalls links;
  private final KernelLoader loader;
  private final CurrentStreams currentStreams;
  private final OpenBlocks openBlocks = new OpenBlocks();
  private final List<Runnable> sharing = new CopyOnWriteArrayList<>();
  private final Map<Integer, String> writtenLinks = new ConcurrentHashMap<>();
  private final @Nullable CudaDevice[] devices;
  private boolean closed;

  Cuda(CudaDriver driver, LinkCalls links, KernelLoader loader) {
    this.driver = driver;
    this.links = links;
    this.loader = loader;
    CudaDrivers.requireVersion(driver.devices().driverVersion());
    int count = driver.devices().count();
    if (count == 0) {
      throw new BackendException(
          "the NVIDIA driver finds no GPU that this process may use; CUDA_VISIBLE_DEVICES can hide"
              + " them");
    }
    this.devices = new @Nullable CudaDevice[count];
    this.currentStreams = new CurrentStreams(count);
  }

  /**
   * Returns the driver of this process, loaded by the first call.
   *
   * @throws BackendException what is missing here
   */
  public static Cuda get() {
    synchronized (Cuda.class) {
      Cuda known = shared;
      if (known == null) {
        known = CudaModule.create();
        shared = known;
      }
      return known;
    }
  }

  /** Returns why CUDA cannot be used here, or empty if it can. Loads the driver if it is there. */
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
   * Returns a device.
   *
   * @param index its ordinal, from 0
   * @throws IndexOutOfBoundsException if there is no such device
   */
  public CudaDevice device(int index) {
    synchronized (devices) {
      if (index < 0 || index >= devices.length) {
        throw new IndexOutOfBoundsException(
            "no device cuda:" + index + "; this process may use " + devices.length);
      }
      CudaDevice device = devices[index];
      if (device == null) {
        requireOpen();
        device = new CudaDevice(this, index, loader);
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

  /** Lets a new device and the others that this process uses reach each other's memory. */
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

  /** Lets the others know no more of a device that could not be connected. */
  private void disconnect(CudaDevice device) {
    for (CudaDevice other : devices) {
      if (other != null) {
        other.allocator().removePeer(device.context());
        other.sharable().removePeer(device.context());
      }
    }
  }

  /** Lets no device ask a stream any more on account of what is freed already. */
  void leave(BlockStream stream) {
    synchronized (devices) {
      for (CudaDevice device : devices) {
        if (device != null) {
          device.allocator().leave(stream);
          device.sharable().leave(stream);
        }
      }
    }
  }

  /** Returns the calling thread's current device, at first number 0. */
  public CudaDevice currentDevice() {
    return device(currentStreams.device());
  }

  /** Returns the calling thread's current stream of its current device. */
  public CudaStream currentStream() {
    return currentDevice().currentStream();
  }

  /** Describes the driver, the devices and the links between them, a line each. */
  List<String> findings() {
    List<String> lines = new ArrayList<>();
    lines.add("driver of CUDA " + CudaDrivers.versionText(driver.devices().driverVersion()));
    List<String> busIds = new ArrayList<>();
    for (int i = 0; i < devices.length; i++) {
      busIds.add(driver.devices().pciBusId(i));
      lines.add(DeviceLine.of(driver.devices(), i));
    }
    lines.addAll(DeviceLine.links(LinkMatrix.of(busIds, links)));
    lines.addAll(DeviceLine.reach(driver.devices(), devices.length));
    return lines;
  }

  CudaDriver driver() {
    return driver;
  }

  CurrentStreams currentStreams() {
    return currentStreams;
  }

  /** Returns the links of a device, as {@link LinkMatrix#write} writes them; asks once. */
  String links(int device) {
    return writtenLinks.computeIfAbsent(
        device, index -> LinkMatrix.write(driver.devices().pciBusId(index), links));
  }

  OpenBlocks openBlocks() {
    return openBlocks;
  }

  /** Returns how to give up what shares memory with other processes and is not closed. */
  List<Runnable> sharing() {
    return sharing;
  }

  void requireOpen() {
    synchronized (devices) {
      if (closed) {
        throw new IllegalStateException("the driver was closed");
      }
    }
  }

  /**
   * Releases all stream blocks, waits until the devices are idle and frees all that was made here,
   * tensors too. For tests: only the end of a process closes its driver.
   */
  void close() {
    synchronized (devices) {
      if (closed) {
        return;
      }
      closed = true;
      openBlocks.releaseAll();
      sharing.forEach(Runnable::run);
      for (CudaDevice device : devices) {
        if (device != null) {
          device.close();
        }
      }
    }
  }
}
