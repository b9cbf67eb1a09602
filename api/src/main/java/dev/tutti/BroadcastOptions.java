package dev.tutti;

import java.time.Duration;

/**
 * Holds the options of a broadcast.
 *
 * @param root the rank that sends
 * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
 * @param async whether the call returns at once instead of when the operation is done
 */
public record BroadcastOptions(int root, Duration timeout, boolean async) {
  /** Holds c10d's defaults. */
  public static final BroadcastOptions DEFAULT =
      new BroadcastOptions(0, ProcessGroup.GROUP_TIMEOUT, false);

  /**
   * Returns these options with another root.
   *
   * @param root the rank that sends
   */
  public BroadcastOptions withRoot(int root) {
    return new BroadcastOptions(root, timeout, async);
  }

  /**
   * Returns these options with another timeout.
   *
   * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
   */
  public BroadcastOptions withTimeout(Duration timeout) {
    return new BroadcastOptions(root, timeout, async);
  }

  /** Returns these options for a call that returns at once. */
  public BroadcastOptions withAsync() {
    return new BroadcastOptions(root, timeout, true);
  }
}
