package dev.tutti.cli.run;

import dev.tutti.Store;
import dev.tutti.StoreConnectionException;
import dev.tutti.store.PrefixStore;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The keys through which the launchers of several nodes agree.
 *
 * @param store the launchers' part of the store that they share with the ranks
 * @param node the number of this launcher's node
 * @param nodes the number of nodes
 */
record NodeKeys(Store store, int node, int nodes) {
  /** The prefix that separates the launchers' keys from those of the ranks. */
  static final String PREFIX = "tutti-run";

  static NodeKeys of(LaunchPlan plan, Store shared) {
    return new NodeKeys(new PrefixStore(PREFIX, shared), plan.nodeRank(), plan.nodes());
  }

  /** Returns the same keys on a handle of their own, which the caller closes. */
  NodeKeys duplicate() {
    return new NodeKeys(store.duplicate(), node, nodes);
  }

  /**
   * Writes a key if it is absent, so that writing it again is harmless, and returns the value that
   * it then has. A connection that was idle for a long time may turn out to be lost; the next call
   * opens another.
   */
  byte @Nullable [] write(String key, byte[] value) {
    try {
      return store.compareSet(key, null, value).value();
    } catch (StoreConnectionException e) {
      return store.compareSet(key, null, value).value();
    }
  }

  void mark(String key) {
    var _ = write(key, new byte[] {'1'});
  }

  /** Sets this node's key with a prefix that every node's key has. */
  void markOwn(String prefix) {
    mark(prefix + node);
  }

  List<String> ofAllNodes(String prefix) {
    return IntStream.range(0, nodes).mapToObj(each -> prefix + each).toList();
  }

  boolean areSetByAll(String prefix) {
    return store.check(ofAllNodes(prefix));
  }

  List<Integer> nodesWithout(String prefix) {
    return IntStream.range(0, nodes)
        .filter(each -> !store.check(List.of(prefix + each)))
        .boxed()
        .toList();
  }

  /** Names nodes in a message. */
  static String named(List<Integer> nodes) {
    return (nodes.size() == 1 ? "node " : "nodes ")
        + nodes.stream().map(Object::toString).collect(Collectors.joining(", "));
  }
}
