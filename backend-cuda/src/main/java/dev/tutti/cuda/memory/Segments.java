package dev.tutti.cuda.memory;

import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.DeviceAttribute;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.MemoryCalls;
import dev.tutti.cuda.driver.VirtualMemoryCalls;
import dev.tutti.cuda.driver.VirtualMemoryCalls.Properties;
import dev.tutti.cuda.driver.VirtualMemoryCalls.Share;
import java.lang.System.Logger.Level;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The source of large pieces of a device's memory, which obtains them from the driver and returns
 * them. Calls are serialized by {@link DeviceAllocator}.
 */
interface Segments {
  /** The size of the smallest segment, in bytes. */
  long SMALL = 2 << 20;

  /**
   * Allocates memory.
   *
   * @param bytes a multiple of {@link #SMALL}
   */
  long allocate(long bytes);

  /** Frees memory that no work uses anymore. */
  void free(long address, long bytes);

  /** Returns whether {@link #free} waits until the device is idle. */
  boolean freeWaits();

  /**
   * Lets another device access what is allocated, now and in the future.
   *
   * @param peer a device that is capable of the access
   */
  void addPeer(DeviceContext peer);

  /**
   * Forgets a device that {@link #addPeer} named.
   *
   * @param peer the device, which is being given up
   */
  void removePeer(DeviceContext peer);

  /** Chooses an implementation that the device supports. */
  static Segments of(DeviceContext context) {
    CudaDriver driver = context.driver();
    int device = context.device();
    if (driver.devices().attribute(device, DeviceAttribute.VIRTUAL_MEMORY) != 0) {
      Share share =
          driver.devices().attribute(device, DeviceAttribute.POSIX_HANDLES) == 0
              ? Share.NONE
              : Share.POSIX_FD;
      Properties properties = new Properties(device, share, false);
      if (SMALL % driver.virtualMemory().granularity(properties) == 0) {
        return new Mapped(driver.virtualMemory(), properties);
      }
    }
    return new Plain(context);
  }

  /**
   * Segments of mapped physical memory. Unmapping it does not wait for the device. cuMemFree, by
   * contrast, waits until all streams are idle, and so would wait forever behind a stream block
   * that the same thread has to release.
   */
  final class Mapped implements Segments {
    private final VirtualMemoryCalls calls;
    private final Properties properties;
    private final Map<Long, Long> mapped = new HashMap<>();
    private final List<Integer> devices = new ArrayList<>();

    Mapped(VirtualMemoryCalls calls, Properties properties) {
      this.calls = calls;
      this.properties = properties;
      devices.add(properties.device());
    }

    @Override
    public long allocate(long bytes) {
      long handle = calls.create(bytes, properties);
      try {
        long address = calls.reserve(bytes);
        try {
          map(address, bytes, handle);
          mapped.put(address, bytes);
          return address;
        } catch (RuntimeException e) {
          calls.freeAddress(address, bytes);
          throw e;
        }
      } finally {
        // Existing mappings stay.
        calls.release(handle);
      }
    }

    private void map(long address, long bytes, long handle) {
      calls.map(address, bytes, handle);
      try {
        for (int device : devices) {
          calls.allow(address, bytes, device);
        }
      } catch (RuntimeException e) {
        calls.unmap(address, bytes);
        throw e;
      }
    }

    @Override
    public void free(long address, long bytes) {
      mapped.remove(address);
      calls.unmap(address, bytes);
      calls.freeAddress(address, bytes);
    }

    @Override
    public boolean freeWaits() {
      return false;
    }

    @Override
    public void addPeer(DeviceContext peer) {
      mapped.forEach((address, bytes) -> calls.allow(address, bytes, peer.device()));
      devices.add(peer.device());
    }

    @Override
    public void removePeer(DeviceContext peer) {
      devices.removeIf(each -> each == peer.device());
    }
  }

  /** Segments from the plain allocation calls that every device supports. */
  final class Plain implements Segments {
    private static final System.Logger LOG = System.getLogger(Plain.class.getName());

    private final DeviceContext context;
    private final MemoryCalls calls;
    private final ArrayDeque<DeviceContext> peers = new ArrayDeque<>();
    private boolean isUsed;

    Plain(DeviceContext context) {
      this.context = context;
      this.calls = context.driver().memory();
    }

    @Override
    public long allocate(long bytes) {
      isUsed = true;
      letIn();
      return calls.allocate(bytes);
    }

    @Override
    public void free(long address, long bytes) {
      calls.free(address);
    }

    @Override
    public boolean freeWaits() {
      return true;
    }

    @Override
    public void addPeer(DeviceContext peer) {
      peers.add(peer);
      if (isUsed) {
        letIn();
      }
    }

    @Override
    public void removePeer(DeviceContext peer) {
      peers.remove(peer);
    }

    /**
     * Enables access for the peers, but not before there is memory: doing so maps all memory of the
     * process.
     */
    private void letIn() {
      while (!peers.isEmpty()) {
        DeviceContext peer = peers.removeFirst();
        try {
          peer.enter();
          peer.driver().contexts().enablePeerAccess(context.handle());
        } catch (CudaException e) {
          // A device that needs access enables it itself; the memory may be for another process.
          LOG.log(
              Level.WARNING,
              "cuda:{0} cannot reach the sharable memory of cuda:{1}: {2}",
              peer.device(),
              context.device(),
              e.getMessage());
        } finally {
          context.enter();
        }
      }
    }
  }
}
