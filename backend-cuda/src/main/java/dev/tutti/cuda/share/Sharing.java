package dev.tutti.cuda.share;

import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.DeviceAttribute;
import java.util.Locale;

/** The ways in which a rank's memory can be mapped by its peers. */
public enum Sharing {
  /**
   * Memory allocated separately from its addresses, passed as a fabric handle if all ranks have
   * one, otherwise as a file descriptor.
   */
  VMM,
  /** The same, always passed as a file descriptor. */
  FD,
  /**
   * A plain allocation, opened by a handle; it must be freed only after its peers have closed it.
   */
  IPC;

  /**
   * Returns the way with the given name.
   *
   * @param name {@code vmm}, {@code fd}, {@code ipc} or {@code auto}
   * @param driver the driver
   * @param device the device
   * @throws IllegalArgumentException if there is no way of that name
   */
  public static Sharing choose(String name, CudaDriver driver, int device) {
    return switch (name.toLowerCase(Locale.ROOT)) {
      case "vmm" -> VMM;
      case "fd" -> FD;
      case "ipc" -> IPC;
      case "auto" -> best(driver, device);
      default -> throw new IllegalArgumentException("expected vmm, fd, ipc or auto, not " + name);
    };
  }

  private static Sharing best(CudaDriver driver, int device) {
    boolean mapped =
        driver.devices().attribute(device, DeviceAttribute.VIRTUAL_MEMORY) != 0
            && driver.devices().attribute(device, DeviceAttribute.POSIX_HANDLES) != 0;
    return mapped ? VMM : IPC;
  }
}
