package dev.tutti.cli.run;

import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import java.time.Duration;
import java.util.List;

/**
 * The departure of the nodes: each node that has come sets {@code left/R}, and node 0, which hosts
 * the store, waits for the others.
 */
final class NodeDeparture {
  /** How long node 0 keeps the store for nodes that have not left. */
  private static final Duration TIMEOUT = Duration.ofSeconds(10);

  /** The prefix of the keys of nodes that have left. */
  private static final String LEFT = "left/";

  private NodeDeparture() {}

  /** Notifies the other nodes that this one leaves; node 0 then waits for them. */
  static void leave(NodeKeys keys, NodeMeeting meeting) {
    try {
      if (meeting.came()) {
        keys.store().set(LEFT + keys.node(), "1");
      }
      if (keys.node() == 0) {
        awaitOthers(keys, meeting);
      }
    } catch (StoreException e) {
      // Node 0 is already gone, so there is nobody left to notify.
    }
  }

  private static void awaitOthers(NodeKeys keys, NodeMeeting meeting) {
    List<Integer> others = meeting.othersThatCame();
    List<String> left = others.stream().map(node -> LEFT + node).toList();
    if (left.isEmpty()) {
      return;
    }
    try {
      keys.store().await(left, TIMEOUT);
    } catch (StoreTimeoutException e) {
      List<Integer> late =
          others.stream().filter(node -> !keys.store().check(List.of(LEFT + node))).toList();
      System.getLogger("dev.tutti.cli")
          .log(System.Logger.Level.WARNING, "node 0 exits before {0}", NodeKeys.named(late));
    }
  }
}
