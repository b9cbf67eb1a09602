package dev.tutti.gloo.transport;

import java.util.ArrayDeque;
import java.util.Queue;
import org.jspecify.annotations.Nullable;

/** Holds what is under way on one slot of one pair. */
final class SlotState {
  long slot;
  final RequestQueue sends = new RequestQueue();
  final RequestQueue receives = new RequestQueue();

  /** Receives of the peer that no send of ours met yet. */
  int remoteReceives;

  /** What the oldest of those is to receive, if known; else 0. */
  long remoteSignature;

  /** Sends of the peer that no receive of ours met yet. */
  int remoteSends;

  /** Receives of ours that no announcement of the peer met yet. */
  int expectedSends;

  /** Eager messages of ours that no receive of the peer met yet. */
  int eagerSends;

  /** The eager messages of the peer that no receive of ours met yet; part of remoteSends. */
  final Queue<EarlyMessage> early = new ArrayDeque<>(1);

  /** When the oldest of {@link #remoteSends} came, as a number that grows over all pairs. */
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
