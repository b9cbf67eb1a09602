package dev.tutti.cli.run;

import dev.tutti.Store;
import dev.tutti.spi.NanoClock;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/**
 * A heartbeat that shows other launchers that this one is alive, and finds those that are not: each
 * increments its own key, and one whose count has not changed for too long is gone. Used by one
 * thread.
 */
final class Heartbeat {
  private final Store store;
  private final String own;
  private final Duration limit;
  private final NanoClock clock;
  private final Map<String, Seen> others = new HashMap<>();

  /** What was seen of another launcher. */
  private record Seen(long first, long count, long changedAt) {}

  /**
   * Creates a heartbeat.
   *
   * @param store the store shared by the launchers
   * @param own the name of this launcher
   * @param limit how long a launcher may be silent, from the first beat after which others look for
   *     it; several times the interval of {@link #beat}
   */
  Heartbeat(Store store, String own, Duration limit, NanoClock clock) {
    this.store = store;
    this.own = own;
    this.limit = limit;
    this.clock = clock;
  }

  /**
   * Increments this launcher's count, and returns a launcher that has been silent for too long, if
   * there is one.
   *
   * @param names the launchers that take part, with or without this one
   */
  Optional<String> beat(Collection<String> names) {
    long _ = store.add(key(own), 1);
    others.keySet().retainAll(names);
    for (String name : names) {
      if (!name.equals(own) && isSilent(name)) {
        return Optional.of(name);
      }
    }
    return Optional.empty();
  }

  private boolean isSilent(String name) {
    long count = store.add(key(name), 0);
    long now = clock.nanoTime();
    Seen before = others.computeIfAbsent(name, _ -> new Seen(count, count, now));
    if (before.count != count) {
      others.put(name, new Seen(before.first, count, now));
    }
    return before.count == count && now - before.changedAt > limit.toNanos();
  }

  /** Returns whether another launcher was alive after the first look at it. */
  boolean isAlive(String name) {
    Seen seen = others.get(name);
    return seen != null && seen.count != seen.first;
  }

  private static String key(String name) {
    return "alive/" + name;
  }
}
