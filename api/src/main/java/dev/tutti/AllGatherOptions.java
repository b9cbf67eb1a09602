package dev.tutti;

import java.time.Duration;

/**
 * Holds the options of an all-gather.
 *
 * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
 * @param async whether the call returns at once instead of when the operation is done
 */
public record AllGatherOptions(Duration timeout, boolean async) {
  /** Holds c10d's defaults. */
  public static final AllGatherOptions DEFAULT =
      new AllGatherOptions(ProcessGroup.GROUP_TIMEOUT, false);

  /**
   * Returns these options with another timeout.
   *
   * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
   */
  public AllGatherOptions withTimeout(Duration timeout) {
    return new AllGatherOptions(timeout, async);
  }

  /** Returns these options for a call that returns at once. */
  public AllGatherOptions withAsync() {
    return new AllGatherOptions(timeout, true);
  }
}
