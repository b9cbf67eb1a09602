package dev.tutti;

import java.time.Duration;

/**
 * Holds the options of an all-reduce.
 *
 * @param reduceOp how elements become one
 * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
 * @param async whether the call returns at once instead of when the operation is done
 */
public record AllReduceOptions(ReduceOp reduceOp, Duration timeout, boolean async) {
  /** Holds c10d's defaults. */
  public static final AllReduceOptions DEFAULT =
      new AllReduceOptions(ReduceOp.SUM, ProcessGroup.GROUP_TIMEOUT, false);

  /**
   * Returns these options with another reduceOp.
   *
   * @param reduceOp how elements become one
   */
  public AllReduceOptions withReduceOp(ReduceOp reduceOp) {
    return new AllReduceOptions(reduceOp, timeout, async);
  }

  /**
   * Returns these options with another timeout.
   *
   * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
   */
  public AllReduceOptions withTimeout(Duration timeout) {
    return new AllReduceOptions(reduceOp, timeout, async);
  }

  /** Returns these options for a call that returns at once. */
  public AllReduceOptions withAsync() {
    return new AllReduceOptions(reduceOp, timeout, true);
  }
}
