package dev.tutti.cuda.driver;

import java.util.List;

/** Tells what the NVLinks of devices lead to. */
public interface LinkCalls {
  /** What an NVLink leads to: another device, or a switch that all devices are at. */
  sealed interface Link {
    /**
     * Leads to a device.
     *
     * @param pciBusId where it is
     */
    record ToDevice(String pciBusId) implements Link {}

    /** Leads to a switch. */
    record ToSwitch() implements Link {}
  }

  /**
   * Returns the links of a device that are in use.
   *
   * @param pciBusId the device
   * @throws dev.tutti.BackendException if they cannot be had, with the reason
   */
  List<Link> links(String pciBusId);
}
