package dev.tutti.cli.simulate;

/** What an operation waits for. */
public enum Resource {
  /** Ranks of a host that wait for each other in shared memory. */
  ROUNDS("rounds"),
  /** Copies in memory that the ranks of a host share. */
  MEMORY("memory"),
  /** The trip of a message. */
  LATENCY("latency"),
  /** What sender and receiver do for a message of any size. */
  MESSAGES("messages"),
  /** The start of a kernel on a device. */
  LAUNCH("launch"),
  /** The links between the devices of a host. */
  LINKS("links"),
  /** Copies between memory and sockets. */
  SOCKETS("sockets"),
  /** The network interfaces of a host. */
  NIC("NIC"),
  /** The links between a rack and the spine. */
  SPINE("spine"),
  /** Arithmetic. */
  REDUCTION("reduction");

  private final String label;

  Resource(String label) {
    this.label = label;
  }

  /** Returns the name in tables. */
  public String label() {
    return label;
  }
}
