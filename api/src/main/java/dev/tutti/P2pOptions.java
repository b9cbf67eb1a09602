package dev.tutti;

import java.time.Duration;

/**
 * Holds the options of a send or receive.
 *
 * @param tag tells messages of one pair apart; from 0
 * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
 * @param async whether the call returns at once instead of when the operation is done
 */
public record P2pOptions(int tag, Duration timeout, boolean async) {
  /** Holds c10d's defaults. */
  public static final P2pOptions DEFAULT = new P2pOptions(0, ProcessGroup.GROUP_TIMEOUT, false);

  /**
   * Returns these options with another tag.
   *
   * @param tag tells messages of one pair apart; from 0
   */
  public P2pOptions withTag(int tag) {
    return new P2pOptions(tag, timeout, async);
  }

  /**
   * Returns these options with another timeout.
   *
   * @param timeout deadline from the call; {@link ProcessGroup#GROUP_TIMEOUT} takes the group's
   */
  public P2pOptions withTimeout(Duration timeout) {
    return new P2pOptions(tag, timeout, async);
  }

  /** Returns these options for a call that returns at once. */
  public P2pOptions withAsync() {
    return new P2pOptions(tag, timeout, true);
  }
}
