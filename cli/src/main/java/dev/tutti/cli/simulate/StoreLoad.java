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

  /** Returns what joining a group of *gloo* over sockets takes, by the calls of real ranks. */
  public static StoreLoad joining(long ranks, Network network) {
    boolean large = ranks >= LARGE;
    double calls = ranks * (large ? 16.0 : 13.0);
    double keys = ranks * (large ? 5.0 * ranks + 10 : 3.0 * ranks + 9);
    double bytes = (double) ranks * ranks * (ADDRESS_BYTES + (large ? 0 : Long.BYTES * ranks));
    StoreCost store = network.store();
    double seconds = calls * store.call() + keys * store.key() + network.crowding() * store.join();
    return new StoreLoad("join", calls, keys, bytes, ranks, seconds);
  }

  /** Returns what ranks take until all have ended after one of them failed. */
  public static StoreLoad failure(long ranks, Network network) {
    StoreCost store = network.store();
    double seconds = ranks * store.waiter() + network.crowding() * store.fail();
    return new StoreLoad("failure", ranks + 1, ranks + 1, ENTRY_BYTES * ranks, ranks, seconds);
  }

  /** Returns what one call of each rank takes if all call at the same time. */
  public static StoreLoad call(long ranks, Network network) {
    return new StoreLoad("call", ranks, ranks, 0, 0, ranks * network.store().call());
  }
}
