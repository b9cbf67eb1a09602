package dev.tutti.gradients;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import org.jspecify.annotations.Nullable;

/** The count of the ranks that still have inputs, if the options say so. */
final class UnevenInputs {
  private final ProcessGroup group;
  private final ReducerOptions.@Nullable Divisor divisor;
  private final Tensor active = Tensor.allocate(DType.INT64, 1);
  private final ReduceOp[] means;

  UnevenInputs(ProcessGroup group, ReducerOptions.@Nullable Divisor divisor) {
    this.group = group;
    this.divisor = divisor;
    means = new ReduceOp[group.size() + 1];
    for (int ranks = 1; ranks <= group.size(); ranks++) {
      boolean all = ranks == group.size() || divisor != ReducerOptions.Divisor.ACTIVE_RANKS;
      means[ranks] = all ? ReduceOp.AVG : ReduceOp.premulSum(1.0 / ranks);
    }
  }

  boolean isAllowed() {
    return divisor != null;
  }

  /**
   * Counts the ranks that still have inputs, with the collective that begins each step.
   *
   * @param hasInputs whether this rank still has inputs
   */
  int count(boolean hasInputs) {
    active.setLong(0, hasInputs ? 1 : 0);
    group.allReduce(active, ReduceOp.SUM);
    return (int) active.getLong(0);
  }

  /** Returns the operator for a step in which the given number of ranks have inputs. */
  ReduceOp mean(int ranks) {
    return means[ranks];
  }

  /**
   * Returns, when all ranks have finished, the highest of the ranks that had inputs for the
   * longest.
   */
  int lastRank(long ownSteps) {
    Tensor all = Tensor.allocate(DType.INT64, group.size());
    group.allGatherInto(all, Tensor.of(ownSteps));
    int last = 0;
    for (int rank = 1; rank < group.size(); rank++) {
      if (all.getLong(rank) >= all.getLong(last)) {
        last = rank;
      }
    }
    return last;
  }
}
