package dev.tutti.cli.run;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Optional;

/**
 * The options that must be the same on all nodes.
 *
 * @param nodes the number of nodes
 * @param maxRestarts how often they restart their ranks
 * @param node the node that states these terms
 */
record LaunchTerms(int nodes, int maxRestarts, int node) {
  static LaunchTerms of(LaunchPlan plan) {
    return new LaunchTerms(plan.nodes(), plan.maxRestarts(), plan.nodeRank());
  }

  static LaunchTerms decode(byte[] bytes) {
    String[] fields = new String(bytes, UTF_8).split(" ", 3);
    return new LaunchTerms(
        Integer.parseInt(fields[0]), Integer.parseInt(fields[1]), Integer.parseInt(fields[2]));
  }

  byte[] encode() {
    return (nodes + " " + maxRestarts + " " + node).getBytes(UTF_8);
  }

  /** Describes the difference from another node's terms, if there is one. */
  Optional<String> differenceFrom(LaunchTerms other) {
    if (node > other.node) {
      return other.differenceFrom(this);
    }
    if (nodes != other.nodes) {
      return Optional.of(difference("--nnodes", nodes, other.nodes, other.node));
    }
    return maxRestarts == other.maxRestarts
        ? Optional.empty()
        : Optional.of(difference("--max-restarts", maxRestarts, other.maxRestarts, other.node));
  }

  private String difference(String option, int mine, int theirs, int other) {
    return "node %d was started with %s=%d, node %d with %s=%d; give all nodes the same value"
        .formatted(node, option, mine, other, option, theirs);
  }
}
