package dev.tutti.internal;

import dev.tutti.Store;
import dev.tutti.StoreTimeoutException;
import dev.tutti.TuttiException;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeoutException;

/**
 * Is a barrier made of store keys that names the ranks that do not come, for backends without one
 * of their own. Rank 0 waits for a key of each rank, then sets one for all; costs 2 round trips.
 */
final class StoreMonitoredBarrier {
  private static final Duration SLICE = Duration.ofMillis(100);
  private static final Duration SLACK = Duration.ofSeconds(2);

  private final Group group;
  private final Store store;

  StoreMonitoredBarrier(Group group, Store store) {
    this.group = group;
    this.store = store;
  }

  void run(Operation op, boolean waitAllRanks) throws TimeoutException {
    String prefix = "monitored/" + op.sequenceNumber() + "/";
    if (group.rank != 0) {
      store.set(prefix + group.rank, "1");
      awaitGo(op, prefix + "go");
      return;
    }
    List<Integer> missing = new ArrayList<>();
    for (int r = 1; r < group.size && (waitAllRanks || missing.isEmpty()); r++) {
      try {
        store.wait(List.of(prefix + r), left(op));
      } catch (StoreTimeoutException e) {
        missing.add(r);
      }
    }
    if (missing.isEmpty()) {
      store.set(prefix + "go", "1");
      return;
    }
    String ranks =
        missing.size() == 1
            ? "rank " + missing.get(0)
            : "ranks " + missing.toString().replaceAll("[\\[\\]]", "");
    throw new PeerLostException(
        missing.get(0), ranks + " did not reach the monitored barrier in time", null);
  }

  private void awaitGo(Operation op, String key) throws TimeoutException {
    long limit = op.deadlineNanos() + SLACK.toNanos();
    while (System.nanoTime() - limit < 0) {
      try {
        store.wait(List.of(key), SLICE);
        return;
      } catch (StoreTimeoutException e) {
        TuttiException failure = group.failure();
        if (failure != null) {
          throw failure;
        }
      }
    }
    throw new TimeoutException(
        "this rank reached the monitored barrier, but rank 0 did not answer");
  }

  private static Duration left(Operation op) {
    return Duration.ofNanos(Math.max(0, op.deadlineNanos() - System.nanoTime()));
  }
}
