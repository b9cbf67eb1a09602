package dev.tutti.internal;

import dev.tutti.Store;
import dev.tutti.StoreTimeoutException;
import dev.tutti.TuttiException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** Waits for the keys of other ranks of a group, but no longer than the group lives. */
final class StoreWait {
  private static final Duration SLICE = Duration.ofMillis(100);

  private final Group group;
  private final Store store;

  StoreWait(Group group, Store store) {
    this.group = group;
    this.store = store;
  }

  /**
   * Waits until keys exist.
   *
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @return whether they came to exist
   * @throws TuttiException what failed the group meanwhile, or that the store failed
   */
  boolean await(List<String> keys, long deadlineNanos) {
    while (true) {
      Duration left = Deadlines.left(deadlineNanos);
      try {
        store.wait(keys, left.compareTo(SLICE) < 0 ? left : SLICE);
        return true;
      } catch (StoreTimeoutException e) {
        group.failures.throwAgreed();
        if (left.isZero()) {
          return false;
        }
      }
    }
  }

  /**
   * Waits for a key of each of several ranks.
   *
   * @param prefix the key is this and the rank
   * @param first the lowest rank to wait for; all up to the last rank follow
   * @param deadlineNanos in terms of {@link System#nanoTime()}
   * @return the ranks that did not come
   */
  List<Integer> awaitRanks(String prefix, int first, long deadlineNanos) {
    List<Integer> missing = new ArrayList<>();
    if (!await(keys(prefix, first), deadlineNanos)) {
      for (int r = first; r < group.size; r++) {
        if (!store.check(List.of(prefix + r))) {
          missing.add(r);
        }
      }
    }
    return missing;
  }

  /** Returns a key for each rank from one on. */
  List<String> keys(String prefix, int first) {
    List<String> keys = new ArrayList<>();
    for (int r = first; r < group.size; r++) {
      keys.add(prefix + r);
    }
    return keys;
  }
}
