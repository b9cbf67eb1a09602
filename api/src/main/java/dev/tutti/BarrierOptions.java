package dev.tutti;

import java.time.Duration;

/**
 * Holds the options of a barrier; c10d's takes no timeout, this one does.
 *
 * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
 * @param async whether the call returns at once instead of when the operation is done
 */
public record BarrierOptions(Duration timeout, boolean async) {
  /** Holds c10d's defaults. */
  public static final BarrierOptions DEFAULT =
      new BarrierOptions(ProcessGroup.GROUP_TIMEOUT, false);

  /**
   * Returns these options with another timeout.
   *
   * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
   */
  public BarrierOptions withTimeout(Duration timeout) {
    return new BarrierOptions(timeout, async);
  }

  /** Returns these options for a call that returns at once. */
  public BarrierOptions withAsync() {
    return new BarrierOptions(timeout, true);
  }
}
