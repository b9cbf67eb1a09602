package dev.tutti.cuda.collective;

import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.access.Parts;
import java.util.Optional;

/** A static method that finds out whether a device has failed. */
public final class DeviceFailure {
  private DeviceFailure() {}

  /** Returns what the driver reports of a device on which nothing runs any more, or empty. */
  public static Optional<String> of(CudaDevice device) {
    try {
      boolean _ = device.defaultStream().isIdle();
      return Optional.empty();
    } catch (CudaException e) {
      String why = Parts.of(device).staleGraphs().explain(e).getMessage();
      return Optional.of(device + " has failed: " + why);
    }
  }
}
