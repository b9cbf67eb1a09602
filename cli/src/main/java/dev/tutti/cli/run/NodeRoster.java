package dev.tutti.cli.run;

import dev.tutti.cli.run.LaunchRendezvous.Verdict;
import dev.tutti.cli.run.LaunchRendezvous.Verdict.Kind;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Which nodes a job has, as the entries of its log say. Launchers that have read the same entries
 * have equal ones, so an entry counts for all of them or for none.
 */
final class NodeRoster {
  private final int fewest;
  private final SortedMap<Integer, NodeMember> members = new TreeMap<>();
  private int firstRanks;
  private int nextRank;
  private @Nullable Verdict verdict;

  /**
   * Creates an empty one.
   *
   * @param fewest the number of nodes with which the job begins
   */
  NodeRoster(int fewest) {
    this.fewest = fewest;
  }

  /** Applies the next entry; returns whether it counts. */
  boolean apply(NodeEvent event) {
    boolean counts =
        switch (event) {
          case NodeEvent.Came came -> come(came);
          case NodeEvent.Done(int node, String launcher) ->
              verdict == null
                  && has(node, launcher)
                  && members.computeIfPresent(node, (_, member) -> member.done()) != null;
          case NodeEvent.Gone(int node, String launcher, String _) ->
              has(node, launcher) && members.remove(node) != null;
          case NodeEvent.Ended _ -> verdict == null;
        };
    if (counts && verdict == null) {
      verdict = verdictAfter(event);
    }
    return counts;
  }

  private boolean come(NodeEvent.Came came) {
    if (verdict != null || members.containsKey(came.node()) || hasDone()) {
      return false;
    }
    boolean joins = hasBegun();
    members.put(
        came.node(), new NodeMember(came.launcher(), came.ranks(), came.host(), -1, joins, false));
    if (joins) {
      members.computeIfPresent(came.node(), (_, member) -> numbered(member));
    } else if (members.size() >= fewest) {
      members.replaceAll((_, member) -> numbered(member));
      firstRanks = nextRank;
    }
    return true;
  }

  private NodeMember numbered(NodeMember member) {
    int first = nextRank;
    nextRank += member.ranks();
    return member.startingAt(first);
  }

  private @Nullable Verdict verdictAfter(NodeEvent event) {
    if (event instanceof NodeEvent.Ended(Verdict ended)) {
      return ended;
    }
    if (hasBegun() && members.isEmpty()) {
      return Verdict.stopped(event.node(), "no node is left");
    }
    boolean isSuccess = hasBegun() && members.values().stream().allMatch(NodeMember::isDone);
    return isSuccess ? new Verdict(Kind.SUCCESS, event.node(), -1, 0, "") : null;
  }

  /** Returns whether a launcher takes part as a node. */
  boolean has(int node, String launcher) {
    NodeMember member = members.get(node);
    return member != null && member.launcher().equals(launcher);
  }

  /** Returns whether some node is done, so that the job is about to end. */
  boolean hasDone() {
    return members.values().stream().anyMatch(NodeMember::isDone);
  }

  /** Returns whether enough nodes came, so that ranks run. */
  boolean hasBegun() {
    return firstRanks > 0;
  }

  /** Returns whether the job runs with fewer nodes than it needs. */
  boolean isShort() {
    return hasBegun() && verdict == null && members.size() < fewest;
  }

  /** Returns the number of ranks with which the job began, or 0 if it did not. */
  int firstRanks() {
    return firstRanks;
  }

  /** Returns how the job ended, if it did. */
  Optional<Verdict> verdict() {
    return Optional.ofNullable(verdict);
  }

  /** Returns the node with a number, if it takes part. */
  Optional<NodeMember> at(int node) {
    return Optional.ofNullable(members.get(node));
  }

  /** Returns the numbers of the nodes that take part. */
  Set<Integer> nodes() {
    return Set.copyOf(members.keySet());
  }

  /** Returns the number of a launcher's node. */
  Optional<Integer> nodeOf(String launcher) {
    return members.keySet().stream().filter(node -> has(node, launcher)).findFirst();
  }

  /** Returns the names of all launchers that take part. */
  Set<String> launchers() {
    return members.values().stream().map(NodeMember::launcher).collect(Collectors.toSet());
  }
}
