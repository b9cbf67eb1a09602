package dev.tutti.cuda.collective;

import dev.tutti.Settings;
import java.util.Optional;

/**
 * A check of whether a device has too few hardware queues for its streams. Streams on the same
 * queue wait for each other, so a message may wait behind a collective that itself waits for that
 * message on another rank. The driver reads the variable when it starts.
 */
public final class HardwareQueues {
  private static final String VARIABLE = "CUDA_DEVICE_MAX_CONNECTIONS";
  private static final int ENOUGH = 8; // the driver's default

  private HardwareQueues() {}

  /** Returns a warning about the setting, if it is too small. */
  public static Optional<String> warning(Settings settings) {
    return settings.text(VARIABLE).filter(HardwareQueues::isTooSmall).map(HardwareQueues::advice);
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
