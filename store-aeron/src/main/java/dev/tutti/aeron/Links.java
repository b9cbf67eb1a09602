package dev.tutti.aeron;

import dev.tutti.store.JobToken;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Finds the session of this process with those who serve a store, or opens it. */
final class Links<L extends StoreLink> {
  /*
   * One lock per place: who opens a session there holds up those who want the same one, nobody else. A
   * session counts its users itself and ends with the last; a lost one is replaced for those who come later.
   */
  static final Links<Link> SERVERS = new Links<>();
  static final Links<ClusterLink> CLUSTERS = new Links<>();

  private final Map<Place, Slot> all = new HashMap<>();

  private Links() {}

  /** Is what stores must have in common to share a session. */
  private record Place(
      String where,
      JobToken token,
      AeronStoreOptions.Transport transport,
      Path directory,
      String driver,
      Duration lease,
      boolean spin) {}

  /**
   * Takes part in a session; release it once.
   *
   * @param where who serves
   * @param options how to reach them
   * @param open opens a session where there is none
   */
  L take(String where, AeronStoreOptions options, Supplier<L> open) {
    Place place =
        new Place(
            where,
            options.token(),
            options.transport(),
            options.directory(),
            options.driver(),
            options.lease(),
            options.spin());
    Slot slot;
    synchronized (all) {
      all.values().removeIf(Slot::isUnused);
      slot = all.computeIfAbsent(place, p -> new Slot());
      slot.waiting++;
    }
    try {
      return slot.open(open);
    } finally {
      synchronized (all) {
        slot.waiting--;
      }
    }
  }

  private final class Slot {
    private int waiting;
    private volatile @Nullable L link;

    boolean isUnused() {
      L current = link;
      return waiting == 0 && (current == null || !current.isUsable());
    }

    synchronized L open(Supplier<L> open) {
      L current = link;
      if (current == null || !current.isUsable() || !current.retain()) {
        current = open.get();
        link = current;
      }
      return current;
    }
  }
}
