package dev.tutti.kernels;

/** The slowest kind of link that connects the devices of a group. */
public enum PeerLinks {
  /** NVLinks to switches, or one device for all ranks. */
  SWITCH("NVLink switches"),
  /** NVLinks from device to device. */
  DIRECT("direct NVLinks"),
  /** Without NVLink between at least two devices, which reach each other over PCIe. */
  PCIE("PCIe"),
  /** Unknown, because NVML is not available. */
  UNKNOWN("unknown links");

  private final String label;

  PeerLinks(String label) {
    this.label = label;
  }

  /** Returns the name in reports. */
  public String label() {
    return label;
  }
}
