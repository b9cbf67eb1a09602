package dev.tutti.cuda.collective;

import dev.tutti.Device;
import dev.tutti.Settings;
import java.util.Optional;

/**
 * Checks of whether streams of a device may wait for each other in its hardware queues. Streams on
 * the same queue do, so a message may wait behind a collective that itself waits for that message
 * on another rank. The driver reads the variable when it starts.
 */
public final class HardwareQueues {
  private static final String VARIABLE = "CUDA_DEVICE_MAX_CONNECTIONS";
  private static final int ENOUGH = 8; // the driver's default

  private HardwareQueues() {}

  /** Returns a warning about the setting, if it is too small. */
  public static Optional<String> warning(Settings settings) {
    return settings.text(VARIABLE).filter(HardwareQueues::isTooSmall).map(HardwareQueues::advice);
  }

  /**
   * Returns a warning about ranks of this process that share a device.
   *
   * @param rank this rank
   * @param neighbor another rank of this process on the device
   * @param device the device
   */
  static String ofNeighbors(int rank, int neighbor, Device device) {
    return ("rank %s: rank %s of this process also uses %s; while the host is busy, the driver may"
            + " put copies of both into one queue, where they wait for each other until their"
            + " deadlines; give each rank a process or a device of its own")
        .formatted(rank, neighbor, device);
  }

  private static boolean isTooSmall(String value) {
    try {
      return Integer.parseInt(value.trim()) < ENOUGH;
    } catch (NumberFormatException e) {
      return false;
    }
  }

  private static String advice(String value) {
    return ("%s=%s: messages between GPUs, and groups that run at the same time, may wait for each"
            + " other until their deadlines; unset it, or set it to a number from 8 to 32")
        .formatted(VARIABLE, value);
  }
}
