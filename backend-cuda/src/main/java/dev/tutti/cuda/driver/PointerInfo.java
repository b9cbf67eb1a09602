package dev.tutti.cuda.driver;

/**
 * A description of an address.
 *
 * @param kind the kind of memory
 * @param device the ordinal of the device on which the memory was allocated, or -1
 * @param rangeStart the start of the allocation
 * @param rangeBytes the size of the allocation in bytes
 */
public record PointerInfo(MemoryKind kind, int device, long rangeStart, long rangeBytes) {
  /** The kinds of memory. */
  public enum MemoryKind {
    /** Memory unknown to the driver: ordinary host memory, or none at all. */
    UNKNOWN,
    /** Page-locked host memory. */
    HOST,
    /** Device memory. */
    DEVICE,
    /** Managed memory, which migrates between host and devices. */
    MANAGED
  }

  /** The description of an address unknown to the driver. */
  public static final PointerInfo NONE = new PointerInfo(MemoryKind.UNKNOWN, -1, 0, 0);
}
