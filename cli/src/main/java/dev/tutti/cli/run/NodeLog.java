package dev.tutti.cli.run;

import dev.tutti.Store;
import dev.tutti.spi.Wills;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.Predicate;

/**
 * The log of a job whose nodes come and go: the keys {@code nodes/1}, {@code nodes/2} and so on,
 * each written once, by compare-and-set. Safe for use by multiple threads.
 */
final class NodeLog {
  private static final String PREFIX = "nodes/";

  private final Store store;
  private final NodeRoster roster;
  private final List<Change> changes = new ArrayList<>();
  private long next = 1;

  /**
   * An entry that counted.
   *
   * @param event the entry
   * @param before the node that it names, if that took part before
   */
  record Change(NodeEvent event, Optional<NodeMember> before) {}

  /**
   * Creates one that has read nothing yet.
   *
   * @param store the store of the launchers
   * @param fewest the number of nodes with which the job begins
   */
  NodeLog(Store store, int fewest) {
    this.store = store;
    this.roster = new NodeRoster(fewest);
  }

  /** Leaves an entry that the store appends when this process ends, if the store can. */
  void leaveWill(NodeEvent event) {
    boolean _ = Wills.leave(store, PREFIX, event.encode());
  }

  /** Returns the key of the entry after those that were read. */
  synchronized String nextKey() {
    return PREFIX + next;
  }

  /** Reads the entries that there are by now. */
  synchronized void read() {
    while (store.check(List.of(nextKey()))) {
      boolean _ = apply(NodeEvent.decode(store.get(nextKey())));
    }
  }

  /**
   * Appends an entry, unless it is not wanted after those before it.
   *
   * @param isWanted decides that
   * @return whether it was appended and counts
   */
  synchronized boolean append(NodeEvent event, Predicate<NodeRoster> isWanted) {
    byte[] own = event.encode();
    read();
    while (isWanted.test(roster)) {
      byte[] there = store.compareSet(nextKey(), null, own).value();
      if (there == null || Arrays.equals(there, own)) {
        return apply(event);
      }
      boolean _ = apply(NodeEvent.decode(there));
    }
    return false;
  }

  private boolean apply(NodeEvent event) {
    Optional<NodeMember> before = roster.at(event.node());
    next++;
    boolean counts = roster.apply(event);
    if (counts) {
      changes.add(new Change(event, before));
    }
    return counts;
  }

  /** Returns what the entries that were read say. */
  synchronized <T> T look(Function<NodeRoster, T> look) {
    return look.apply(roster);
  }

  /** Returns the entries that counted and were read since the last call. */
  synchronized List<Change> changes() {
    List<Change> taken = List.copyOf(changes);
    changes.clear();
    return taken;
  }
}
