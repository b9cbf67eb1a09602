package dev.tutti.aeron;

import dev.tutti.store.JobToken;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Finds the session of this process with a server, or opens it. */
final class Links {
  /*
   * One lock per place: who opens a session there holds up those who want the same one, nobody else. A
   * session counts its users itself and ends with the last; a lost one is replaced for those who come later.
   */
  private static final Map<Place, Links> ALL = new HashMap<>();

  private int waiting;
  private volatile @Nullable Link link;

  private Links() {}

  /** Is what stores must have in common to share a session. */
  private record Place(
      String host,
      int port,
      JobToken token,
      AeronStoreOptions.Transport transport,
      Path directory,
      String driver,
      Duration lease,
      boolean spin) {}

  /** Takes part in the session with a server; release it once. */
  static Link take(AeronStoreOptions options) {
    Place place =
        new Place(
            options.host(),
            options.port(),
            options.token(),
            options.transport(),
            options.directory(),
            options.driver(),
            options.lease(),
            options.spin());
    Links links;
    synchronized (ALL) {
      ALL.values().removeIf(Links::isUnused);
      links = ALL.computeIfAbsent(place, p -> new Links());
      links.waiting++;
    }
    try {
      return links.open(options);
    } finally {
      synchronized (ALL) {
        links.waiting--;
      }
    }
  }

  private boolean isUnused() {
    Link current = link;
    return waiting == 0 && (current == null || !current.isUsable());
  }

  private synchronized Link open(AeronStoreOptions options) {
    Link current = link;
    if (current == null || !current.isUsable() || !current.retain()) {
      current = new LinkOpener(options).open();
      link = current;
    }
    return current;
  }
}
