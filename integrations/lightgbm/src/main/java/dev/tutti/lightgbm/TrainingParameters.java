package dev.tutti.lightgbm;

import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/**
 * Parameters of LightGBM in a text such as {@code "objective=binary tree_learner=data"}, of which
 * some make ranks train by themselves, without a word of LightGBM at its usual verbosity.
 */
final class TrainingParameters {
  private static final Map<String, String> ALIASES =
      Map.of(
          "tree", "tree_learner",
          "tree_type", "tree_learner",
          "tree_learner_type", "tree_learner",
          "linear_trees", "linear_tree",
          "num_machine", "num_machines");

  private final Map<String, String> values = new HashMap<>();

  TrainingParameters(String text) {
    for (String part : text.strip().split("\\s+")) {
      String[] pair = part.split("=", 2);
      String name = ALIASES.getOrDefault(pair[0], pair[0]);
      // LightGBM takes the first of several.
      values.putIfAbsent(name, pair.length == 2 ? pair[1].toLowerCase(Locale.ROOT) : "");
    }
  }

  /** Returns whether the number of ranks is among the parameters. */
  boolean haveRanks() {
    return values.containsKey("num_machines");
  }

  /**
   * Refuses parameters with which ranks do not train one model together.
   *
   * @param rank this rank, for messages
   * @param size the number of ranks, at least 2
   * @throws IllegalArgumentException naming the parameter, and what LightGBM makes of it
   */
  void require(int rank, int size) {
    String machines = values.getOrDefault("num_machines", "" + size);
    if (!machines.equals("" + size)) {
      throw refusal(rank, "num_machines=" + machines, "the group has " + size + " ranks");
    }
    String learner = values.getOrDefault("tree_learner", "serial").replace("_parallel", "");
    if (learner.equals("serial")) {
      throw refusal(rank, "tree_learner=serial", "each rank would train alone; use data or voting");
    }
    if (learner.equals("feature")) {
      throw refusal(
          rank, "tree_learner=feature", "LightGBM's C API does not support it; use data or voting");
    }
    if (isOn("linear_tree")) {
      throw refusal(rank, "linear_tree=true", "LightGBM grows linear trees on each rank alone");
    }
  }

  private boolean isOn(String name) {
    String value = values.getOrDefault(name, "false");
    return value.equals("true") || value.equals("+");
  }

  private static IllegalArgumentException refusal(int rank, String parameter, String reason) {
    return new IllegalArgumentException(
        "rank " + rank + " cannot train with " + parameter + ": " + reason);
  }
}
