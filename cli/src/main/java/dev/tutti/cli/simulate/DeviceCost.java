package dev.tutti.cli.simulate;

/**
 * What an operation on the devices of a host costs. All numbers are at least 0.
 *
 * @param start the seconds until a kernel of a graph runs
 * @param trip the seconds until peers have what a device sends
 * @param send the seconds in which a device sends a byte
 * @param gap the seconds that a kernel starts later if it is not in a graph
 * @param call the seconds that a host spends on each call; no call without a graph is shorter
 */
public record DeviceCost(double start, double trip, double send, double gap, double call) {
  /** H200s that a switch connects, as docs/scale.md says. */
  public static final DeviceCost H200 = new DeviceCost(1.1e-6, 1.5e-6, 1 / 330e9, 1.3e-6, 4.8e-6);

  /** Returns the costs of calls that are in a graph. */
  DeviceCost inGraph() {
    return new DeviceCost(start, trip, send, 0, 0);
  }
}
