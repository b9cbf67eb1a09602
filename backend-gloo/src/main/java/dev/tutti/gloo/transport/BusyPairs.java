package dev.tutti.gloo.transport;

import dev.tutti.gloo.transport.ring.Sleep;
import org.jspecify.annotations.Nullable;

/**
 * Keeps track of the pairs that need attention: active pairs expect something, dirty ones have
 * bytes to write, buffered ones have bytes to read that no selector knows of, and sharing ones have
 * rings to check. All methods require the transport's lock.
 */
final class BusyPairs {
  private final Pair[] active;
  private final Pair[] dirty;
  private final Pair[] buffered;
  private Pair[] sharing = new Pair[0];
  private boolean allShare;
  private @Nullable Sleep sleep;
  private int activeCount;
  private int dirtyCount;
  private int bufferedCount;

  BusyPairs(int size) {
    active = new Pair[size];
    dirty = new Pair[size];
    buffered = new Pair[size];
  }

  void activate(Pair pair) {
    pair.activeIndex = activeCount;
    active[activeCount++] = pair;
  }

  void deactivate(Pair pair) {
    Pair last = active[--activeCount];
    active[pair.activeIndex] = last;
    last.activeIndex = pair.activeIndex;
    pair.activeIndex = -1;
  }

  int activeCount() {
    return activeCount;
  }

  void markDirty(Pair pair) {
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
      Pair pair = dirty[i];
      progress |= pair.connection.flush();
      if (!pair.connection.hasUnsent()) {
        pair.dirty = false;
        dirty[i] = dirty[--dirtyCount];
        progress = true;
      }
    }
    return progress;
  }

  /** Asks to be woken when channels accept more bytes. */
  void wantWrites() {
    for (int i = 0; i < dirtyCount; i++) {
      dirty[i].connection.wantWrites(true);
    }
  }

  void markBuffered(Pair pair) {
    if (!pair.buffered) {
      pair.buffered = true;
      buffered[bufferedCount++] = pair;
    }
  }

  /** Reads the bytes that pairs have buffered. */
  boolean readBuffered() {
    boolean progress = false;
    for (int i = bufferedCount - 1; i >= 0; i--) {
      Pair pair = buffered[i];
      progress |= pair.connection.readable();
      if (!pair.connection.hasBuffered()) {
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
        progress |= active[i].connection.readable();
      }
    }
    return progress;
  }

  /**
   * Checks rings from now on.
   *
   * @param pairs all pairs that share memory
   * @param alone whether there are no other pairs
   * @param ownSleep tells peers that this rank is asleep
   */
  void share(Pair[] pairs, boolean alone, Sleep ownSleep) {
    sharing = pairs;
    allShare = alone;
    sleep = ownSleep;
  }

  /** Tells whether any pairs move their messages through rings. */
  boolean shareMemory() {
    return sleep != null;
  }

  /** Tells whether all pairs move their messages through rings. */
  boolean allShareMemory() {
    return allShare;
  }

  /** Reads the bytes in the rings. */
  boolean readRings() {
    boolean progress = false;
    for (Pair pair : sharing) {
      progress |= pair.connection.pollRing();
    }
    return progress;
  }

  /**
   * Tells peers that this rank is asleep, unless there is something to do at once.
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
    for (Pair pair : sharing) {
      if (pair.connection.hasRingWork()) {
        own.end();
        return false;
      }
    }
    return true;
  }

  /** Tells peers that this rank is awake again. */
  void wakeUp() {
    Sleep own = sleep;
    if (own != null) {
      own.end();
    }
  }
}
