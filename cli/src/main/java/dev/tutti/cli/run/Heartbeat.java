package dev.tutti.cli.run;

import dev.tutti.Store;
import java.time.Duration;
import java.util.Arrays;
import java.util.OptionalInt;

/**
 * A heartbeat that shows other launchers that this one is alive, and finds those that are not: each
 * increments its own key, and one whose count has not changed for too long is gone. Used by one
 * thread.
 */
final class Heartbeat {
  private final Store store;
  private final int node;
  private final Duration limit;
  private final long[] counts;
  private final long[] changedAt;

  /**
   * Creates a heartbeat; no launcher is considered gone before the limit has passed from now.
   *
   * @param store the store shared by the launchers
   * @param node the number of this launcher's node
   * @param nodes the number of launchers
   * @param limit how long a launcher may be silent; several times the interval of {@link #beat}
   */
  Heartbeat(Store store, int node, int nodes, Duration limit) {
    this.store = store;
    this.node = node;
    this.limit = limit;
    this.counts = new long[nodes];
    this.changedAt = new long[nodes];
    Arrays.fill(changedAt, System.nanoTime());
  }

  /**
   * Increments this node's count, and returns a launcher that has been silent for too long, if
   * there is one.
   */
  OptionalInt beat() {
    store.add(key(node), 1);
    for (int other = 0; other < counts.length; other++) {
      if (other == node) {
        continue;
      }
      long count = store.add(key(other), 0);
      if (count != counts[other]) {
        counts[other] = count;
        changedAt[other] = System.nanoTime();
      } else if (System.nanoTime() - changedAt[other] > limit.toNanos()) {
        return OptionalInt.of(other);
      }
    }
    return OptionalInt.empty();
  }

  private static String key(int node) {
    return "alive/" + node;
  }
}
