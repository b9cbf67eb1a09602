package dev.tutti.cuda.driver;

/**
 * Tells what an address is.
 *
 * @param kind what memory it is in
 * @param device ordinal of the device that it was allocated on, or -1
 * @param rangeStart where its allocation begins
 * @param rangeBytes how long its allocation is
 */
public record PointerInfo(Kind kind, int device, long rangeStart, long rangeBytes) {
  /** Names kinds of memory. */
  public enum Kind {
    /** Unknown to the driver: ordinary host memory, or none. */
    UNKNOWN,
    /** Page-locked host memory. */
    HOST,
    /** Memory of a device. */
    DEVICE,
    /** Memory that moves between host and devices. */
    MANAGED
  }

  /** An address that the driver knows nothing of. */
  public static final PointerInfo NONE = new PointerInfo(Kind.UNKNOWN, -1, 0, 0);
}
