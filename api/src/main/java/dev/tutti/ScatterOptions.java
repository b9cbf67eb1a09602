package dev.tutti;

import java.time.Duration;

/**
 * Holds the options of a scatter.
 *
 * @param root the rank that hands out the parts
 * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
 * @param async whether the call returns at once instead of when the operation is done
 */
public record ScatterOptions(int root, Duration timeout, boolean async) {
  /** Holds c10d's defaults. */
  public static final ScatterOptions DEFAULT =
      new ScatterOptions(0, ProcessGroup.GROUP_TIMEOUT, false);

  /**
   * Returns these options with another root.
   *
   * @param root the rank that hands out the parts
   */
  public ScatterOptions withRoot(int root) {
    return new ScatterOptions(root, timeout, async);
  }

  /**
   * Returns these options with another timeout.
   *
   * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
   */
  public ScatterOptions withTimeout(Duration timeout) {
    return new ScatterOptions(root, timeout, async);
  }

  /** Returns these options for a call that returns at once. */
  public ScatterOptions withAsync() {
    return new ScatterOptions(root, timeout, true);
  }
}
