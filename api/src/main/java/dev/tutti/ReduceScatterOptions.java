package dev.tutti;

import java.time.Duration;

/**
 * Holds the options of a reduce-scatter.
 *
 * @param reduceOp how elements become one
 * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
 * @param async whether the call returns at once instead of when the operation is done
 */
public record ReduceScatterOptions(ReduceOp reduceOp, Duration timeout, boolean async) {
  /** Holds c10d's defaults. */
  public static final ReduceScatterOptions DEFAULT =
      new ReduceScatterOptions(ReduceOp.SUM, ProcessGroup.GROUP_TIMEOUT, false);

  /**
   * Returns these options with another reduceOp.
   *
   * @param reduceOp how elements become one
   */
  public ReduceScatterOptions withReduceOp(ReduceOp reduceOp) {
    return new ReduceScatterOptions(reduceOp, timeout, async);
  }

  /**
   * Returns these options with another timeout.
   *
   * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
   */
  public ReduceScatterOptions withTimeout(Duration timeout) {
    return new ReduceScatterOptions(reduceOp, timeout, async);
  }

  /** Returns these options for a call that returns at once. */
  public ReduceScatterOptions withAsync() {
    return new ReduceScatterOptions(reduceOp, timeout, true);
  }
}
