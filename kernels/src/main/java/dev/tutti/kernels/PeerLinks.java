package dev.tutti.kernels;

/** Says what the devices of a group are connected by, where that is slowest. */
public enum PeerLinks {
  /** NVLinks to switches, or one device for all ranks. */
  SWITCH("NVLink switches"),
  /** NVLinks from device to device. */
  DIRECT("direct NVLinks"),
  /** No NVLink between some two devices, which reach each other over PCIe. */
  PCIE("PCIe"),
  /** Not known, as NVML is not there. */
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
