package dev.tutti.cuda.driver;

import java.util.List;

/** The calls that report what a device's NVLinks connect to. */
public interface LinkCalls {
  /** The far end of an NVLink: another device, or a switch to which all devices are connected. */
  sealed interface Link {
    /**
     * A link to a device.
     *
     * @param pciBusId the device's PCI bus ID
     */
    record ToDevice(String pciBusId) implements Link {}

    /** A link to a switch. */
    record ToSwitch() implements Link {}
  }

  /**
   * Returns the active links of a device.
   *
   * @param pciBusId the device's PCI bus ID
   * @throws dev.tutti.BackendException if the links cannot be queried; the message gives the reason
   */
  List<Link> links(String pciBusId);
}
