package dev.tutti;

import java.util.Locale;

/**
 * Names where a tensor's memory is.
 *
 * @param type lower-case kind, {@code cpu} or {@code cuda} or one that a third party adds
 * @param index which device of that kind, from 0
 */
public record Device(String type, int index) {
  /** Host memory. */
  public static final Device CPU = new Device("cpu", 0);

  /**
   * Creates a device name.
   *
   * @throws IllegalArgumentException if the type is empty or not lower case, or the index negative
   */
  public Device {
    if (type.isEmpty() || !type.equals(type.toLowerCase(Locale.ROOT))) {
      throw new IllegalArgumentException("device type must be lower-case text: '" + type + "'");
    }
    if (index < 0) {
      throw new IllegalArgumentException("device index must not be negative: " + index);
    }
  }

  /**
   * Names a CUDA device.
   *
   * @param index the ordinal, from 0
   */
  public static Device cuda(int index) {
    return new Device("cuda", index);
  }

  /** Tells whether this is host memory. */
  public boolean isCpu() {
    return type.equals("cpu");
  }

  @Override
  public String toString() {
    return isCpu() ? type : type + ":" + index;
  }
}
