package dev.tutti;

import java.time.Duration;
import java.util.Objects;

/**
 * Holds the options of an all-reduce.
 *
 * @param reduceOp how elements become one
 * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
 * @param async whether the call returns at once instead of when the operation is done
 * @param algorithm how to do it, the same on all ranks
 */
public record AllReduceOptions(
    ReduceOp reduceOp, Duration timeout, boolean async, AllReduceAlgorithm algorithm) {
  /** Holds c10d's defaults. */
  public static final AllReduceOptions DEFAULT =
      new AllReduceOptions(
          ReduceOp.SUM, ProcessGroup.GROUP_TIMEOUT, false, AllReduceAlgorithm.AUTO);

  /** Creates options; the algorithm must not be null. */
  public AllReduceOptions {
    Objects.requireNonNull(algorithm, "algorithm");
  }

  /**
   * Returns these options with another reduceOp.
   *
   * @param reduceOp how elements become one
   */
  public AllReduceOptions withReduceOp(ReduceOp reduceOp) {
    return new AllReduceOptions(reduceOp, timeout, async, algorithm);
  }

  /**
   * Returns these options with another timeout.
   *
   * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
   */
  public AllReduceOptions withTimeout(Duration timeout) {
    return new AllReduceOptions(reduceOp, timeout, async, algorithm);
  }

  /** Returns these options for a call that returns at once. */
  public AllReduceOptions withAsync() {
    return new AllReduceOptions(reduceOp, timeout, true, algorithm);
  }

  /**
   * Returns these options for a call by an algorithm. Where the backend cannot, for these tensors
   * or at all, the call throws {@link UnsupportedOperationException} with the reason, on all ranks
   * alike, and leaves tensors and group as they were.
   *
   * @param algorithm the same on all ranks; for one dense tensor, as lists and sparse tensors take
   *     {@link AllReduceAlgorithm#AUTO} alone
   */
  public AllReduceOptions withAlgorithm(AllReduceAlgorithm algorithm) {
    return new AllReduceOptions(reduceOp, timeout, async, algorithm);
  }
}
