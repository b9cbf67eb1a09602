package dev.tutti.cli.simulate;

/**
 * What one server of a store, and the ranks that call it, cost. All numbers are at least 0.
 *
 * @param call the seconds of the server for a call of one of 16 clients
 * @param growth by what part of that a call takes longer each time that clients double
 * @param key the seconds for each key of a call, with its value
 * @param wake the seconds until a client that waits alone continues
 * @param waiter the seconds of the server to wake one of 16 clients; it grows as a call does
 * @param join the seconds of a core that a rank needs to join
 * @param disconnect the seconds of a core for each connection of a rank that ends after a failure
 */
public record StoreCost(
    double call,
    double growth,
    double key,
    double wake,
    double waiter,
    double join,
    double disconnect) {
  /** What docs/scale.md says. */
  static final StoreCost MEASURED =
      new StoreCost(6.1e-6, 0.096, 0.37e-6, 337e-6, 4.8e-6, 40e-3, 0.61e-3);

  private static final double FEW = 16;

  /** Returns how much longer the server takes for one of so many clients than for one of 16. */
  private double longer(double clients) {
    return 1 + growth * Math.max(0, Math.log(clients / FEW) / Math.log(2));
  }

  /** Returns the seconds of the server for one of the calls of so many clients. */
  double call(double clients) {
    return call * longer(clients);
  }

  /** Returns the seconds until the last of so many clients that wait for a key continues. */
  double wake(double clients) {
    return wake + clients * waiter * longer(clients);
  }
}
