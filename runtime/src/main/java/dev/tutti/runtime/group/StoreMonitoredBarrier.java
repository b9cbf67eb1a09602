package dev.tutti.runtime.group;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.runtime.rendezvous.StoreWait;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLateException;
import java.lang.System.Logger.Level;
import java.util.List;
import java.util.concurrent.TimeoutException;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * A barrier over store keys that names the missing ranks, for backends that have no such barrier of
 * their own. Rank 0 waits for one key of each rank, then sets one for all; this costs 2 round
 * trips. Rank 0 then deletes the keys of the previous barrier, which every rank in this barrier has
 * left.
 */
final class StoreMonitoredBarrier implements Backend {
  private static final String GO = "go";
  private static final System.Logger LOG = System.getLogger(StoreMonitoredBarrier.class.getName());

  private final Group group;
  private final Store store;
  private final StoreWait wait;

  StoreMonitoredBarrier(Group group, Store store) {
    this.group = group;
    this.store = store;
    this.wait = new StoreWait(group.identity, group.failures, store);
  }

  @Override
  public void monitoredBarrier(Operation op, boolean waitAllRanks) throws TimeoutException {
    long number = group.monitoredBarriers.incrementAndGet();
    String prefix = prefix(number);
    if (group.identity.rank() != 0) {
      store.set(prefix + group.identity.rank(), "1");
      if (!wait.await(List.of(prefix + GO), op.deadlineNanos())) {
        throw new TimeoutException(
            "this rank reached the monitored barrier, but rank 0 did not answer");
      }
      return;
    }
    List<Integer> missing = wait.awaitRanks(prefix, 1, op.deadlineNanos());
    if (!missing.isEmpty()) {
      missing = waitAllRanks ? missing : missing.subList(0, 1);
      throw new PeerLateException(missing, "did not reach the monitored barrier in time");
    }
    store.set(prefix + GO, "1");
    forget(number - 1);
  }

  /** Returns the keys of a barrier of a group of a size. */
  static Stream<String> keys(long number, int size) {
    String prefix = prefix(number);
    return Stream.concat(
        Stream.of(prefix + GO), IntStream.range(1, size).mapToObj(rank -> prefix + rank));
  }

  private static String prefix(long number) {
    return "monitored/" + number + "/";
  }

  private void forget(long number) {
    try {
      keys(number, group.identity.size()).forEach(store::deleteKey);
    } catch (StoreException e) {
      LOG.log(Level.DEBUG, "cannot delete the keys of a barrier from the store", e);
    }
  }

  /** Does nothing: the failure of the group ends the wait for keys. */
  @Override
  public void abort(Throwable cause) {}

  @Override
  public void close() {}
}
