package dev.tutti.cli.simulate;

/** Networks whose numbers are easy to multiply. */
final class Networks {
  /** 1 µs for a round and 0.5 µs each; 20, 10 and 5 GB/s. */
  static final LinkCost MEMORY = link(1e-6, 0.5e-6, 0.05e-9, 0.1e-9, 0.2e-9);

  /** 10 µs for a trip and 2 µs for a message; 2, 4 and 1 GB/s. */
  static final LinkCost SOCKET = link(10e-6, 2e-6, 0.5e-9, 0.25e-9, 1e-9);

  /** 1 µs to start and 2 µs for a trip; 100 GB/s; 3 µs later without a graph, 8 µs of the host. */
  static final DeviceCost DEVICE = new DeviceCost(1e-6, 2e-6, 0.01e-9, 3e-6, 8e-6);

  /**
   * 10 µs for a call, a tenth more for each doubling of clients, 1 for a key, 300 for who waits and
   * 20 for each; 3 ms of a core to join and 0.1 to disconnect.
   */
  static final StoreCost STORE = new StoreCost(10e-6, 0.1, 1e-6, 300e-6, 20e-6, 3e-3, 0.1e-3);

  private Networks() {}

  /** Returns costs whose bytes cost the same in tensors of all sizes. */
  static LinkCost link(double round, double each, double reduce, double spread, double gather) {
    return new LinkCost(
        round, each, Curve.flat(reduce), Curve.flat(spread), Curve.flat(gather), Shares.NONE);
  }

  /**
   * Returns hosts of so many ranks and cores, in racks of 4, with 1 GB/s each and half of it up.
   */
  static Network of(int ranks, int cores) {
    return new Network(ranks, cores, 4, 2, MEMORY, SOCKET, 5e-6, 1e-9, 3e-6, DEVICE, STORE);
  }
}
