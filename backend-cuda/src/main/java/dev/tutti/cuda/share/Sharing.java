package dev.tutti.cuda.share;

import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.DeviceAttribute;
import java.util.Locale;

/** Names the ways in which a rank's memory can become part of its peers' addresses. */
public enum Sharing {
  /**
   * Memory that is made apart from its addresses, passed as a fabric handle where all ranks have
   * one, else as a file descriptor.
   */
  VMM,
  /** The same, passed as a file descriptor. */
  FD,
  /** An allocation, opened by a handle; must be freed after its peers closed it. */
  IPC;

  /**
   * Finds a way by its name.
   *
   * @param name {@code vmm}, {@code fd}, {@code ipc} or {@code auto}
   * @param driver the driver
   * @param device the device
   * @throws IllegalArgumentException if there is none such
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
