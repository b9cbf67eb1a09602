package dev.tutti.cuda.driver;

/** Device attributes, with the driver's numbers for them. */
public enum DeviceAttribute {
  /** Number of multiprocessors. */
  MULTIPROCESSORS(16),
  /** Major part of the compute capability. */
  COMPUTE_CAPABILITY_MAJOR(75),
  /** Minor part of the compute capability. */
  COMPUTE_CAPABILITY_MINOR(76),
  /** Whether physical memory and addresses can be allocated separately. */
  VIRTUAL_MEMORY(102),
  /** Whether such memory can be exported as a file descriptor. */
  POSIX_HANDLES(103),
  /** Whether such memory can be exported as a fabric handle. */
  FABRIC_HANDLES(128),
  /** Whether the switch can write to several devices at once. */
  MULTICAST(132);

  private final int code;

  DeviceAttribute(int code) {
    this.code = code;
  }

  /** Returns the driver's number. */
  public int code() {
    return code;
  }
}
