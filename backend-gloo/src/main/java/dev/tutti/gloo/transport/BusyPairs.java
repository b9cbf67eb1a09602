package dev.tutti.gloo.transport;

import dev.tutti.gloo.transport.ring.Sleep;
import org.jspecify.annotations.Nullable;

/**
 * Keeps track of the pairs that need attention: active pairs expect something, dirty ones have
 * bytes to write, buffered ones have bytes to read that no selector reports, and sharing ones have
 * rings to check. All methods require the transport's lock.
 */
final class BusyPairs {
  private final PairTraffic[] active;
  private final PairTraffic[] dirty;
  private final PairTraffic[] buffered;
  private PairTraffic[] sharing = new PairTraffic[0];
  private boolean allShare;
  private @Nullable Sleep sleep;
  private int activeCount;
  private int dirtyCount;
  private int bufferedCount;

  BusyPairs(int size) {
    active = new PairTraffic[size];
    dirty = new PairTraffic[size];
    buffered = new PairTraffic[size];
  }

  void activate(PairTraffic pair) {
    pair.activeIndex = activeCount;
    active[activeCount++] = pair;
  }

  void deactivate(PairTraffic pair) {
    PairTraffic last = active[--activeCount];
    active[pair.activeIndex] = last;
    last.activeIndex = pair.activeIndex;
    pair.activeIndex = -1;
  }

  int activeCount() {
    return activeCount;
  }

  void markDirty(PairTraffic pair) {
    if (!pair.dirty) {
      pair.dirty = true;
      dirty[dirtyCount++] = pair;
    }
  }

  boolean haveUnsent() {
    return dirtyCount > 0;
  }

  /**
   * Writes waiting bytes, as far as the channels accept them.
   *
   * @return whether anything was written, or a pair has nothing left to write
   */
  boolean flush() {
    boolean progress = false;
    for (int i = dirtyCount - 1; i >= 0; i--) {
      PairTraffic pair = dirty[i];
      progress |= pair.flush();
      if (!pair.hasUnsent()) {
        pair.dirty = false;
        dirty[i] = dirty[--dirtyCount];
        progress = true;
      }
    }
    return progress;
  }

  /** Requests a wake-up when channels accept more bytes. */
  void wantWrites() {
    for (int i = 0; i < dirtyCount; i++) {
      dirty[i].wantWrites(true);
    }
  }

  void markBuffered(PairTraffic pair) {
    if (!pair.buffered) {
      pair.buffered = true;
      buffered[bufferedCount++] = pair;
    }
  }

  /** Reads the bytes that pairs have buffered. */
  boolean readBuffered() {
    boolean progress = false;
    for (int i = bufferedCount - 1; i >= 0; i--) {
      PairTraffic pair = buffered[i];
      progress |= pair.readable();
      if (!pair.hasBuffered()) {
        pair.buffered = false;
        buffered[i] = buffered[--bufferedCount];
      }
    }
    return progress;
  }

  /** Reads from the channels of all active pairs. */
  boolean readActive() {
    boolean progress = false;
    // Reading may end requests and so take this pair, or any later one, off the list.
    for (int i = activeCount - 1; i >= 0; i--) {
      if (i < activeCount) {
        progress |= active[i].readable();
      }
    }
    return progress;
  }

  /**
   * Checks rings from now on.
   *
   * @param pairs all pairs that share memory
   * @param alone whether there are no other pairs
   * @param ownSleep notifies peers that this rank is asleep
   */
  void share(PairTraffic[] pairs, boolean alone, Sleep ownSleep) {
    sharing = pairs;
    allShare = alone;
    sleep = ownSleep;
  }

  /** Returns whether any pairs move their messages through rings. */
  boolean shareMemory() {
    return sleep != null;
  }

  /** Returns whether all pairs move their messages through rings. */
  boolean allShareMemory() {
    return allShare;
  }

  /** Reads the bytes in the rings. */
  boolean readRings() {
    boolean progress = false;
    for (PairTraffic pair : sharing) {
      progress |= pair.pollRing();
    }
    return progress;
  }

  /**
   * Notifies peers that this rank is asleep, unless there is something to do at once.
   *
   * @return whether this rank may sleep
   */
  boolean fallAsleep() {
    if (bufferedCount > 0) {
      return false;
    }
    Sleep own = sleep;
    if (own == null) {
      return true;
    }
    own.begin();
    for (PairTraffic pair : sharing) {
      if (pair.hasRingWork()) {
        own.end();
        return false;
      }
    }
    return true;
  }

  /** Notifies peers that this rank is awake again. */
  void wakeUp() {
    Sleep own = sleep;
    if (own != null) {
      own.end();
    }
  }
}
