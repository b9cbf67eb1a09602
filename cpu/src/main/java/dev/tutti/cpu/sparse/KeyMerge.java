package dev.tutti.cpu.sparse;

/** Merges the ascending keys of tensors pairwise; equal keys stay in order. */
final class KeyMerge {
  private KeyMerge() {}

  /** Orders keys that ascend within each tensor; overwrites them. */
  static SparsePlaces order(SparseKeys keys) {
    long[] from = keys.keys();
    long[] to = new long[from.length];
    int[] entries = new int[from.length];
    int[] moved = new int[from.length];
    for (int i = 0; i < entries.length; i++) {
      entries[i] = i;
    }
    for (int step = 1; step < keys.tensors(); step *= 2) {
      for (int t = 0; t < keys.tensors(); t += 2 * step) {
        int middle = keys.start(Math.min(t + step, keys.tensors()));
        int end = keys.start(Math.min(t + 2 * step, keys.tensors()));
        merge(from, entries, to, moved, keys.start(t), middle, end);
      }
      long[] keysBefore = from;
      from = to;
      to = keysBefore;
      int[] entriesBefore = entries;
      entries = moved;
      moved = entriesBefore;
    }
    return SparsePlaces.ofSorted(from, entries);
  }

  private static void merge(
      long[] keys, int[] entries, long[] toKeys, int[] toEntries, int from, int middle, int end) {
    int left = from;
    int right = middle;
    int at = from;
    while (left < middle && right < end) {
      // Which side comes next is unpredictable, so this uses no branch.
      int isRight = (int) ((keys[right] - keys[left]) >>> 63);
      int next = left + ((right - left) & -isRight);
      toKeys[at] = keys[next];
      toEntries[at++] = entries[next];
      right += isRight;
      left += 1 - isRight;
    }
    copy(keys, entries, toKeys, toEntries, left, at, middle - left);
    copy(keys, entries, toKeys, toEntries, right, at + middle - left, end - right);
  }

  private static void copy(
      long[] keys, int[] entries, long[] toKeys, int[] toEntries, int from, int at, int count) {
    System.arraycopy(keys, from, toKeys, at, count);
    System.arraycopy(entries, from, toEntries, at, count);
  }
}
