package dev.tutti.gloo.transport.connect;

import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.PeerLateException;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;

/** Reads what ranks of a group publish in its store while they meet. */
public final class Published {
  private Published() {}

  /**
   * Waits for it.
   *
   * @param context which rank of which group, and its store
   * @param prefix of the keys, which end with a rank
   * @param peers the ranks
   * @param what they publish, in words
   * @param timeout from now
   * @return it, in the order of the ranks
   * @throws RendezvousException naming the ranks that have not published it by then
   * @throws StoreSilentException if the store does not answer
   */
  public static List<byte[]> read(
      BackendContext context, String prefix, int[] peers, String what, Duration timeout) {
    Store store = context.store();
    List<String> keys = IntStream.of(peers).mapToObj(peer -> prefix + peer).toList();
    try {
      return store.multiGet(keys, timeout);
    } catch (StoreSilentException e) {
      throw e;
    } catch (StoreTimeoutException e) {
      List<Integer> missing =
          IntStream.of(peers).filter(peer -> !isThere(store, prefix + peer)).boxed().toList();
      if (missing.isEmpty()) {
        throw e;
      }
      PeerLateException late =
          new PeerLateException(
              missing,
              "did not publish " + what + " within " + context.timeout().toMillis() + " ms");
      late.addSuppressed(e);
      throw new RendezvousException(
          "rank " + context.rank() + " of group " + context.group() + ": " + late.getMessage(),
          late);
    }
  }

  /** Looks for a key; a server is given a second to answer. */
  private static boolean isThere(Store store, String key) {
    try {
      store.await(List.of(key), Duration.ZERO);
      return true;
    } catch (StoreSilentException e) {
      throw e;
    } catch (StoreTimeoutException e) {
      return false;
    }
  }
}
