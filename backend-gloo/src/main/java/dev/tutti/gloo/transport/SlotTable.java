package dev.tutti.gloo.transport;

import java.security.SecureRandom;
import org.jspecify.annotations.Nullable;

/** Finds the state of a slot; allocates only when more slots are busy than ever before. */
final class SlotTable {
  /** The number of busy slots above which the peer is considered broken. */
  static final int MAX_SLOTS = 1 << 20;

  /*
   * Randomizes the hash, because the peer chooses the slots and must not be able to choose many
   * with the same home.
   */
  private static final long MULTIPLIER = new SecureRandom().nextLong() | 1;

  private @Nullable SlotState[] table = new @Nullable SlotState[16];
  private int shift = shift(table.length);
  private int size;
  private @Nullable SlotState free;

  int size() {
    return size;
  }

  @Nullable SlotState find(long slot) {
    for (int i = home(slot); ; i = i + 1 & table.length - 1) {
      SlotState state = table[i];
      if (state == null || state.slot == slot) {
        return state;
      }
    }
  }

  SlotState findOrAdd(long slot) {
    SlotState found = find(slot);
    if (found != null) {
      return found;
    }
    if (size >= table.length / 2) {
      grow();
    }
    SlotState state = free;
    if (state == null) {
      state = new SlotState();
    } else {
      free = state.nextFree;
      state.nextFree = null;
    }
    state.slot = slot;
    insert(state);
    size++;
    return state;
  }

  /** Removes a slot on which nothing is in progress. */
  void removeIfIdle(SlotState state) {
    if (!state.isIdle()) {
      return;
    }
    int mask = table.length - 1;
    int hole = home(state.slot);
    while (table[hole] != state) {
      hole = hole + 1 & mask;
    }
    // Entries behind the hole that would no longer be found move into it.
    for (int i = hole + 1 & mask; ; i = i + 1 & mask) {
      SlotState other = table[i];
      if (other == null) {
        break;
      }
      if ((i - home(other.slot) & mask) >= (i - hole & mask)) {
        table[hole] = other;
        hole = i;
      }
    }
    table[hole] = null;
    size--;
    state.nextFree = free;
    free = state;
  }

  /** Takes all requests that are queued on any slot. */
  void drainTo(RequestQueue target) {
    for (SlotState state : table) {
      if (state != null) {
        state.sends.moveTo(target);
        state.receives.moveTo(target);
      }
    }
  }

  private void insert(SlotState state) {
    int i = home(state.slot);
    while (table[i] != null) {
      i = i + 1 & table.length - 1;
    }
    table[i] = state;
  }

  private void grow() {
    @Nullable SlotState[] old = table;
    table = new @Nullable SlotState[old.length * 2];
    shift = shift(table.length);
    for (SlotState state : old) {
      if (state != null) {
        insert(state);
      }
    }
  }

  private static int shift(int length) {
    return 1 + Long.numberOfLeadingZeros(length);
  }

  private int home(long slot) {
    return (int) ((slot * MULTIPLIER) >>> shift);
  }
}
