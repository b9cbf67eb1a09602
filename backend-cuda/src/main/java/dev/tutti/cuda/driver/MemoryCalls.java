package dev.tutti.cuda.driver;

/** The driver calls that allocate memory and describe addresses. */
public interface MemoryCalls {
  /**
   * The memory of a device.
   *
   * @param free the number of bytes that no process uses
   * @param total the total number of bytes
   */
  record Room(long free, long total) {}

  /** Returns how much memory is free on the current context's device. */
  Room room();

  /** Allocates memory on the current context's device; may wait until the device is idle. */
  long allocate(long bytes);

  /** Frees memory; may wait until the device is idle. */
  void free(long address);

  /** Allocates page-locked host memory that all devices can access at the same address. */
  long allocateHost(long bytes);

  /** Frees page-locked host memory; may wait until the device is idle. */
  void freeHost(long address);

  /** Describes an address. */
  PointerInfo pointerInfo(long address);

  /**
   * Returns the handle, of {@value EventCalls#IPC_HANDLE_BYTES} bytes, with which another process
   * opens an allocation of {@link #allocate}; it represents the whole allocation.
   */
  byte[] exportHandle(long address);

  /** Maps an allocation of another process. */
  long openHandle(byte[] handle);

  /** Unmaps the allocation that {@link #openHandle} mapped. */
  void closeHandle(long address);
}
