package dev.tutti;

import java.time.Duration;

/**
 * Holds the options of a reduce.
 *
 * @param reduceOp how elements become one
 * @param root the rank that gets the result
 * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
 * @param async whether the call returns at once instead of when the operation is done
 */
public record ReduceOptions(ReduceOp reduceOp, int root, Duration timeout, boolean async) {
  /** Holds c10d's defaults. */
  public static final ReduceOptions DEFAULT =
      new ReduceOptions(ReduceOp.SUM, 0, ProcessGroup.GROUP_TIMEOUT, false);

  /**
   * Returns these options with another reduceOp.
   *
   * @param reduceOp how elements become one
   */
  public ReduceOptions withReduceOp(ReduceOp reduceOp) {
    return new ReduceOptions(reduceOp, root, timeout, async);
  }

  /**
   * Returns these options with another root.
   *
   * @param root the rank that gets the result
   */
  public ReduceOptions withRoot(int root) {
    return new ReduceOptions(reduceOp, root, timeout, async);
  }

  /**
   * Returns these options with another timeout.
   *
   * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
   */
  public ReduceOptions withTimeout(Duration timeout) {
    return new ReduceOptions(reduceOp, root, timeout, async);
  }

  /** Returns these options for a call that returns at once. */
  public ReduceOptions withAsync() {
    return new ReduceOptions(reduceOp, root, timeout, true);
  }
}
