package dev.tutti;

import java.io.Serializable;
import java.util.Locale;

/**
 * The location of a tensor's memory.
 *
 * @param type the kind of device in lower case, such as {@code cpu}, {@code cuda}, or one that a
 *     third party adds
 * @param index the index among the devices of that kind, starting at 0
 */
public record Device(String type, int index) implements Serializable {
  /** Host memory. */
  public static final Device CPU = new Device("cpu", 0);

  /**
   * Creates a device name.
   *
   * @throws IllegalArgumentException if the type is empty or not lower case, or the index is
   *     negative
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
   * Returns a CUDA device.
   *
   * @param index the device ordinal, starting at 0
   */
  public static Device cuda(int index) {
    return new Device("cuda", index);
  }

  /** Returns whether this is host memory. */
  public boolean isCpu() {
    return type.equals("cpu");
  }

  @Override
  public String toString() {
    return isCpu() ? type : type + ":" + index;
  }
}
