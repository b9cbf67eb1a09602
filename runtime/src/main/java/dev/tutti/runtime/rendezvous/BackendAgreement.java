package dev.tutti.runtime.rendezvous;

import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.Printable;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;

/**
 * Checks that the ranks of a job have the same backends: the first rank to come writes its own to
 * the store, and the others compare theirs with it. Costs one round trip.
 */
public final class BackendAgreement {
  private static final String KEY = "backends";

  private BackendAgreement() {}

  /**
   * Compares this rank's backends with those in the store.
   *
   * @param store the store of this job
   * @param rank this rank
   * @param size the number of ranks
   * @param providers the providers of this rank, by kind of device
   * @throws RendezvousException if the backends for a device kind that both ranks have differ,
   *     naming both ranks and their backends
   */
  public static void require(
      Store store, int rank, int size, Map<String, BackendProvider> providers) {
    StringBuilder own = new StringBuilder().append(rank);
    new TreeMap<>(providers)
        .forEach(
            (type, provider) -> own.append('\n').append(type).append('\n').append(provider.name()));
    byte[] value = own.toString().getBytes(StandardCharsets.UTF_8);
    Store.Swap swap = store.compareSet(KEY, null, value);
    byte[] there = swap.value();
    if (swap.stored() || there == null) {
      return;
    }
    String[] first = Printable.lines(new String(there, StandardCharsets.UTF_8)).split("\n", -1);
    for (int i = 1; i + 1 < first.length; i += 2) {
      BackendProvider provider = providers.get(first[i]);
      if (provider != null && !provider.name().equals(first[i + 1])) {
        throw new RendezvousException(
            ("the ranks of the job have different backends for %s: rank %s/%d has '%s', but rank"
                    + " %d has '%s'; %s, or the option, must be the same for all")
                .formatted(
                    first[i],
                    first[0],
                    size,
                    first[i + 1],
                    rank,
                    provider.name(),
                    RuntimeSettings.BACKEND.name()));
      }
    }
  }
}
