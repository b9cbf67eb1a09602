package dev.tutti;

import java.time.Duration;

/**
 * Holds the options of a gather.
 *
 * @param root the rank that gets the parts
 * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
 * @param async whether the call returns at once instead of when the operation is done
 */
public record GatherOptions(int root, Duration timeout, boolean async) {
  /** Holds c10d's defaults. */
  public static final GatherOptions DEFAULT =
      new GatherOptions(0, ProcessGroup.GROUP_TIMEOUT, false);

  /**
   * Returns these options with another root.
   *
   * @param root the rank that gets the parts
   */
  public GatherOptions withRoot(int root) {
    return new GatherOptions(root, timeout, async);
  }

  /**
   * Returns these options with another timeout.
   *
   * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
   */
  public GatherOptions withTimeout(Duration timeout) {
    return new GatherOptions(root, timeout, async);
  }

  /** Returns these options for a call that returns at once. */
  public GatherOptions withAsync() {
    return new GatherOptions(root, timeout, true);
  }
}
