package dev.tutti.gloo;

import dev.tutti.CollectiveException;
import dev.tutti.DType;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;

/**
 * A rank of {@link KilledMemberTest}: it reduces until something fails, continues with the ranks
 * that are left, then with one that joins, and prints a line for each. With {@code join} it is the
 * one that joins.
 */
final class MemberMain {
  private MemberMain() {}

  public static void main(String[] args) {
    int elements = Integer.parseInt(args[0]);
    if (args[1].equals("join")) {
      System.out.println("WAITS");
      try (ProcessGroup group = ProcessGroup.join(GroupOptions.DEFAULT)) {
        tell("GROWN", group, elements);
        leave(group);
      }
      return;
    }
    ProcessGroup group = ProcessGroup.init();
    tell("READY", group, elements);
    while (group.failure().isEmpty()) {
      try {
        double _ = sum(group, elements);
      } catch (CollectiveException e) {
        System.out.println("FAILED " + e.getMessage());
      }
    }
    ProcessGroup left = group.shrink();
    tell("SHRUNK", left, elements);
    try (ProcessGroup grown = left.grow(1)) {
      tell("GROWN", grown, elements);
      leave(grown);
    }
  }

  private static void leave(ProcessGroup group) {
    group.barrier();
    System.out.println("DONE");
  }

  private static void tell(String what, ProcessGroup group, int elements) {
    double sum = sum(group, elements);
    System.out.println(what + " " + group.rank() + "/" + group.size() + " " + sum);
  }

  /** Returns what all elements are after a reduction; each rank gives its number plus one. */
  private static double sum(ProcessGroup group, int elements) {
    Tensor tensor = Tensor.allocate(DType.FLOAT32, elements).fill(group.rank() + 1);
    group.allReduce(tensor);
    float first = -1;
    for (float each : tensor.toFloatArray()) {
      if (first >= 0 && each != first) {
        throw new AssertionError(first + " and " + each);
      }
      first = each;
    }
    return first;
  }
}
