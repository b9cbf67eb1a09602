package dev.tutti.cli.run;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Optional;

/**
 * The options that must be the same on all nodes.
 *
 * @param nodes how many nodes there are, as --nnodes says
 * @param maxRestarts how often they restart their ranks
 * @param isElastic whether ranks are replaced while the others continue
 * @param node the node that states these terms
 */
record LaunchTerms(String nodes, int maxRestarts, boolean isElastic, int node) {
  static LaunchTerms of(LaunchPlan plan) {
    return new LaunchTerms(plan.nnodes(), plan.maxRestarts(), plan.isElastic(), plan.nodeRank());
  }

  static LaunchTerms decode(byte[] bytes) {
    String[] fields = new String(bytes, UTF_8).split(" ", 4);
    return new LaunchTerms(
        fields[0],
        Integer.parseInt(fields[1]),
        Boolean.parseBoolean(fields[2]),
        Integer.parseInt(fields[3]));
  }

  byte[] encode() {
    return (nodes + " " + maxRestarts + " " + isElastic + " " + node).getBytes(UTF_8);
  }

  /** Describes the difference from another node's terms, if there is one. */
  Optional<String> differenceFrom(LaunchTerms other) {
    if (node > other.node) {
      return other.differenceFrom(this);
    }
    if (!nodes.equals(other.nodes)) {
      return Optional.of(difference("--nnodes", nodes, other.nodes, other.node));
    }
    if (maxRestarts != other.maxRestarts) {
      return Optional.of(difference("--max-restarts", maxRestarts, other.maxRestarts, other.node));
    }
    return isElastic == other.isElastic
        ? Optional.empty()
        : Optional.of(difference("--elastic", isElastic, other.isElastic, other.node));
  }

  private String difference(String option, Object mine, Object theirs, int other) {
    return "node %d was started with %s=%s, node %d with %s=%s; give all nodes the same value"
        .formatted(node, option, mine, other, option, theirs);
  }
}
