package com.example;

import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;

/** Computes the mean of numbers that are spread over the ranks. */
public final class Mean {
  private Mean() {}

  /** Joins the job that the environment describes, and prints on rank 0. */
  public static void main(String[] args) {
    try (ProcessGroup group = ProcessGroup.init()) {
      double mean = of(group, group.rank(), group.rank() + 1);
      if (group.rank() == 0) {
        System.out.println("the mean of " + 2 * group.size() + " numbers is " + mean);
      }
    }
  }

  /**
   * Returns the mean of the numbers of all ranks; all of them call it.
   *
   * @param group the ranks
   * @param numbers of this rank; each may have as many as it likes
   */
  static double of(ProcessGroup group, double... numbers) {
    double sum = 0;
    for (double number : numbers) {
      sum += number;
    }
    Tensor total = Tensor.of(sum, numbers.length);
    group.allReduce(total, ReduceOp.SUM);
    return total.getDouble(0) / total.getDouble(1);
  }
}
