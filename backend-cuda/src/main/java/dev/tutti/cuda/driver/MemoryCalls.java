package dev.tutti.cuda.driver;

/** Allocates memory and tells what addresses are. */
public interface MemoryCalls {
  /**
   * Says how much memory a device has.
   *
   * @param free bytes that no process has
   * @param total all bytes
   */
  record Room(long free, long total) {}

  /** Returns what is free on the current context's device. */
  Room room();

  /** Allocates memory of the current context's device; may wait until the device is idle. */
  long allocate(long bytes);

  /** Frees memory; may wait until the device is idle. */
  void free(long address);

  /** Allocates page-locked host memory that all devices reach under the same address. */
  long allocateHost(long bytes);

  /** Frees page-locked host memory; may wait until the device is idle. */
  void freeHost(long address);

  /** Tells what an address is. */
  PointerInfo pointerInfo(long address);

  /**
   * Returns what another process opens an allocation of {@link #allocate} by, {@value
   * EventCalls#IPC_HANDLE_BYTES} bytes; it stands for the whole allocation.
   */
  byte[] exportHandle(long address);

  /** Maps an allocation of another process. */
  long openHandle(byte[] handle);

  /** Takes away what {@link #openHandle} returned. */
  void closeHandle(long address);
}
