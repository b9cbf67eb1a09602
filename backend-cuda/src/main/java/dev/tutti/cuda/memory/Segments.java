package dev.tutti.cuda.memory;

import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.DeviceAttribute;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.MemoryCalls;
import dev.tutti.cuda.driver.VirtualMemoryCalls;
import dev.tutti.cuda.driver.VirtualMemoryCalls.Properties;
import dev.tutti.cuda.driver.VirtualMemoryCalls.Share;

/** Gets large pieces of a device's memory from the driver and gives them back. */
interface Segments {
  /**
   * Allocates memory.
   *
   * @param bytes a multiple of {@link DeviceAllocator#SMALL_SEGMENT}
   */
  long allocate(long bytes);

  /** Gives memory back that no work uses any more. */
  void free(long address, long bytes);

  /** Chooses what the device can do. */
  static Segments of(DeviceContext context) {
    CudaDriver driver = context.driver();
    int device = context.device();
    if (driver.devices().attribute(device, DeviceAttribute.VIRTUAL_MEMORY) != 0) {
      Share share =
          driver.devices().attribute(device, DeviceAttribute.POSIX_HANDLES) == 0
              ? Share.NONE
              : Share.POSIX_FD;
      Properties properties = new Properties(device, share, false);
      if (DeviceAllocator.SMALL_SEGMENT % driver.virtualMemory().granularity(properties) == 0) {
        return new Mapped(driver.virtualMemory(), properties);
      }
    }
    return new Plain(driver.memory());
  }

  /**
   * Maps physical memory. To unmap it does not wait for the device, where cuMemFree waits until all
   * streams are idle, so for ever behind a stream block that the same thread has to release.
   */
  final class Mapped implements Segments {
    private final VirtualMemoryCalls calls;
    private final Properties properties;

    Mapped(VirtualMemoryCalls calls, Properties properties) {
      this.calls = calls;
      this.properties = properties;
    }

    @Override
    public long allocate(long bytes) {
      long handle = calls.create(bytes, properties);
      try {
        long address = calls.reserve(bytes);
        try {
          map(address, bytes, handle);
          return address;
        } catch (RuntimeException e) {
          calls.freeAddress(address, bytes);
          throw e;
        }
      } finally {
        // What is mapped stays.
        calls.release(handle);
      }
    }

    private void map(long address, long bytes, long handle) {
      calls.map(address, bytes, handle);
      try {
        calls.allow(address, bytes, properties.device());
      } catch (RuntimeException e) {
        calls.unmap(address, bytes);
        throw e;
      }
    }

    @Override
    public void free(long address, long bytes) {
      calls.unmap(address, bytes);
      calls.freeAddress(address, bytes);
    }
  }

  /** Allocates as all devices can. */
  final class Plain implements Segments {
    private final MemoryCalls calls;

    Plain(MemoryCalls calls) {
      this.calls = calls;
    }

    @Override
    public long allocate(long bytes) {
      return calls.allocate(bytes);
    }

    @Override
    public void free(long address, long bytes) {
      calls.free(address);
    }
  }
}
