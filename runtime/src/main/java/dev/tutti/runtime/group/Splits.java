package dev.tutti.runtime.group;

import dev.tutti.OpType;
import dev.tutti.Tensor;
import java.util.Arrays;

/** Divides the rows of a tensor, which are its dimension 0, among ranks, as a caller asks. */
final class Splits {
  /** Stands for equal parts. */
  static final long[] NONE = {};

  private final Checks checks;
  private final int ranks;
  private volatile long[] even;

  Splits(Checks checks, int ranks) {
    this.checks = checks;
    this.ranks = ranks;
    this.even = new long[ranks];
  }

  /** Returns how many rows each rank has; none if none are given. */
  long[] orNone(OpType op, String argument, long[] given, Tensor tensor, String tensorName) {
    checks.given(op, tensorName, tensor);
    checks.given(op, argument, given);
    return given.length == 0 ? given : of(op, argument, given, tensor, tensorName);
  }

  /**
   * Returns how many rows each rank has; the array must not be changed. Without given numbers they
   * are equal, and those of the last call if they are the same.
   */
  long[] of(OpType op, String argument, long[] given, Tensor tensor, String tensorName) {
    checks.given(op, argument, given);
    if (tensor.dim() == 0) {
      throw checks.bad(op, "%s must have at least one dimension, but is %s", tensorName, tensor);
    }
    long rows = tensor.size(0);
    if (given.length == 0) {
      if (rows % ranks != 0) {
        throw checks.bad(
            op,
            "dimension 0 of %s must be divisible by %s ranks, but is %s",
            tensorName,
            ranks,
            rows);
      }
      long[] splits = even;
      if (splits[0] * ranks != rows) {
        splits = new long[ranks];
        Arrays.fill(splits, rows / ranks);
        even = splits;
      }
      return splits;
    }
    long[] splits = new long[ranks];
    if (given.length != ranks) {
      throw checks.bad(op, "%s must hold %s sizes, but holds %s", argument, ranks, given.length);
    }
    long sum = 0;
    for (int i = 0; i < splits.length; i++) {
      splits[i] = given[i];
      if (splits[i] < 0) {
        throw checks.bad(
            op, "%s must not hold negative sizes: %s", argument, Arrays.toString(given));
      }
      if (splits[i] > Long.MAX_VALUE - sum) {
        throw checks.bad(
            op, "%s must not add up to more than 2^63-1: %s", argument, Arrays.toString(given));
      }
      sum += splits[i];
    }
    if (sum != rows) {
      throw checks.bad(
          op,
          "%s must add up to dimension 0 of %s, %s, but add up to %s",
          argument,
          tensorName,
          rows,
          sum);
    }
    return splits;
  }
}
