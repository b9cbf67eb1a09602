package dev.tutti.cli.simulate;

/**
 * What one server of a store, and the ranks that call it, cost. All numbers are at least 0.
 *
 * @param call the seconds of the server for a call
 * @param key the seconds for each key of a call, with its value
 * @param waiter the seconds in which the server wakes a client that waits
 * @param join the seconds of a core that a rank needs to join
 * @param fail the seconds of a core that a rank needs to end after a failure
 */
public record StoreCost(double call, double key, double waiter, double join, double fail) {
  /** What docs/scale.md says. */
  static final StoreCost MEASURED = new StoreCost(11e-6, 1e-6, 21e-6, 14e-3, 3e-3);
}
