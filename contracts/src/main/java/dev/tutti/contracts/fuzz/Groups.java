package dev.tutti.contracts.fuzz;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.IntStream;

/**
 * The groups of a program and their ranks.
 *
 * @param members for each group's number, its ranks in their order, as ranks of the world
 */
record Groups(Map<Integer, List<Integer>> members) {
  /** Determines the groups from the steps that create them. */
  static Groups of(Program program) {
    Groups groups = new Groups(new TreeMap<>());
    groups.members.put(0, IntStream.range(0, program.size()).boxed().toList());
    program.steps().forEach(groups::add);
    return groups;
  }

  private void add(Step step) {
    if (step.kind() == StepKind.SUBGROUP) {
      List<Integer> parent = ranks(step.group());
      members.put(step.child(), step.members().stream().sorted().map(parent::get).toList());
    } else if (step.kind() == StepKind.SPLIT) {
      List<Integer> parent = ranks(step.group());
      for (int rank = 0; rank < parent.size(); rank++) {
        int color = step.members().get(rank);
        if (color >= 0) {
          List<Integer> child =
              members.computeIfAbsent(step.child() + color, _ -> new ArrayList<>());
          // A split with the root 1 reverses the order.
          child.add(step.root() == 1 ? 0 : child.size(), parent.get(rank));
        }
      }
    }
  }

  /** Returns the numbers of all groups. */
  Set<Integer> ids() {
    return members.keySet();
  }

  /** Returns the ranks of a group, as ranks of the world. */
  List<Integer> ranks(int group) {
    return Objects.requireNonNull(members.get(group), () -> "no group " + group);
  }

  /** Returns whether a rank of the world takes part in a step. */
  boolean takesPart(int rank, Step step) {
    List<Integer> ranks = ranks(step.group());
    return step.kind() == StepKind.MESSAGE
        ? rank == ranks.get(step.root()) || rank == ranks.get(step.peer())
        : ranks.contains(rank);
  }
}
