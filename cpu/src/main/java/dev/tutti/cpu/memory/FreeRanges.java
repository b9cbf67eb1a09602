package dev.tutti.cpu.memory;

import java.util.Map;
import java.util.TreeMap;

/**
 * Allocates parts of a long range, always from the first free range that is long enough. Used under
 * its owner's lock.
 */
final class FreeRanges {
  /** The length of each free range, by its start; no two ranges are adjacent. */
  private final TreeMap<Long, Long> free = new TreeMap<>();

  /** Creates an instance without free ranges. */
  FreeRanges() {}

  FreeRanges(long offset, long length) {
    free.put(offset, length);
  }

  /** Takes a range; returns its start, or -1 if none is long enough. */
  long take(long length) {
    Map.Entry<Long, Long> range = free.firstEntry();
    while (range != null && range.getValue() < length) {
      range = free.higherEntry(range.getKey());
    }
    if (range == null) {
      return -1;
    }
    long offset = range.getKey();
    if (range.getValue() > length) {
      free.put(offset + length, range.getValue() - length);
    }
    free.remove(offset);
    return offset;
  }

  /** Takes a range back. */
  void give(long offset, long length) {
    long from = offset;
    long to = offset + length;
    Map.Entry<Long, Long> before = free.lowerEntry(offset);
    if (before != null && before.getKey() + before.getValue() == offset) {
      from = before.getKey();
    }
    Long after = free.remove(to);
    if (after != null) {
      to += after;
    }
    free.put(from, to - from);
  }
}
