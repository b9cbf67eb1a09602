package dev.tutti.gloo.transport;

import java.util.ArrayDeque;
import java.util.Queue;
import org.jspecify.annotations.Nullable;

/** What is in progress on one slot of one pair. */
final class SlotState {
  long slot;
  final RequestQueue sends = new RequestQueue();
  final RequestQueue receives = new RequestQueue();

  /** The number of the peer's receives that no send of ours has matched yet. */
  int remoteReceives;

  /** What the oldest of those is to receive, if known; otherwise 0. */
  long remoteSignature;

  /** The number of the peer's sends that no receive of ours has matched yet. */
  int remoteSends;

  /** The number of our receives that no announcement of the peer has matched yet. */
  int expectedSends;

  /** The number of our eager messages that no receive of the peer has matched yet. */
  int eagerSends;

  /** The peer's eager messages that no receive of ours has matched yet; included in remoteSends. */
  final Queue<EarlyMessage> early = new ArrayDeque<>(1);

  /**
   * When the oldest of {@link #remoteSends} arrived, as a number that increases across all pairs.
   */
  long arrival;

  @Nullable SlotState nextFree;

  boolean isIdle() {
    return remoteReceives == 0
        && remoteSends == 0
        && expectedSends == 0
        && eagerSends == 0
        && sends.isEmpty()
        && receives.isEmpty();
  }
}
