package dev.tutti.cli.simulate;

/**
 * What ranks of Tutti do with a store at the same time.
 *
 * @param what what they do
 * @param calls the calls of all ranks
 * @param keys the keys in these calls
 * @param bytes the bytes of values that all ranks read
 * @param waiters the most clients that wait at the server
 * @param seconds the time until the last rank is done
 */
public record StoreLoad(
    String what, double calls, double keys, double bytes, long waiters, double seconds) {
  /** From this number of ranks on, they read addresses without identifiers. */
  private static final int LARGE = 64;

  private static final int ADDRESS_BYTES = 169;
  private static final int ENTRY_BYTES = 34;

  /** In groups of up to this number of ranks, all connect. */
  private static final int ALL_CONNECT = 8;

  /** Returns what joining a group of *gloo* over sockets takes, by the calls of real ranks. */
  public static StoreLoad joining(long ranks, Network network) {
    boolean large = ranks >= LARGE;
    double calls = ranks * (large ? 16.0 : 13.0);
    double keys = ranks * (large ? 5.0 * ranks + 10 : 3.0 * ranks + 9);
    double bytes = (double) ranks * ranks * (ADDRESS_BYTES + (large ? 0 : Long.BYTES * ranks));
    StoreCost store = network.store();
    double server = calls * store.call((double) ranks) + keys * store.key();
    double seconds = Math.max(server, network.crowding() * store.join());
    return new StoreLoad("join", calls, keys, bytes, ranks, seconds);
  }

  /** Returns what ranks take until all have ended after one of them failed. */
  public static StoreLoad failure(long ranks, Network network) {
    StoreCost store = network.store();
    double ending = network.crowding() * connections(ranks) * store.disconnect();
    double seconds = store.wake((double) ranks) + ending;
    double calls = ranks + 1.0;
    return new StoreLoad("failure", calls, calls, (double) ENTRY_BYTES * ranks, ranks, seconds);
  }

  /** Returns to how many others a rank of *gloo* is connected from the beginning. */
  private static long connections(long ranks) {
    return ranks <= ALL_CONNECT
        ? ranks - 1
        : 2 * (Long.SIZE - Long.numberOfLeadingZeros(ranks - 1)) - 1;
  }

  /** Returns what it takes to wake ranks that wait for a key. */
  public static StoreLoad wake(long ranks, Network network) {
    double calls = ranks + 1.0;
    return new StoreLoad("wake", calls, calls, 0, ranks, network.store().wake((double) ranks));
  }

  /** Returns what one call of each rank takes if all call all the time. */
  public static StoreLoad call(long ranks, Network network) {
    double calls = ranks;
    return new StoreLoad("call", calls, calls, 0, 0, calls * network.store().call((double) ranks));
  }
}
