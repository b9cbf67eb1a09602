package dev.tutti;

import java.time.Duration;

/**
 * Holds the options of an all-to-all.
 *
 * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
 * @param async whether the call returns at once instead of when the operation is done
 */
public record AllToAllOptions(Duration timeout, boolean async) {
  /** Holds c10d's defaults. */
  public static final AllToAllOptions DEFAULT =
      new AllToAllOptions(ProcessGroup.GROUP_TIMEOUT, false);

  /**
   * Returns these options with another timeout.
   *
   * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
   */
  public AllToAllOptions withTimeout(Duration timeout) {
    return new AllToAllOptions(timeout, async);
  }

  /** Returns these options for a call that returns at once. */
  public AllToAllOptions withAsync() {
    return new AllToAllOptions(timeout, true);
  }
}
