package dev.tutti.runtime.operation;

import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Counts the collectives of a group by the path that they took. Only the thread that has the turn
 * counts, so no step is atomic and nothing is allocated for a known path; any thread may read.
 */
public final class PathCounts {
  private volatile Entry[] entries = {};
  private Entry last = new Entry("");

  private static final class Entry extends AtomicLong {
    private static final long serialVersionUID = 1;

    private final String path;

    Entry(String path) {
      this.path = path;
    }
  }

  public void add(String path) {
    Entry entry = last;
    if (!entry.path.equals(path)) {
      entry = entryOf(path);
      last = entry;
    }
    entry.setOpaque(entry.getPlain() + 1);
  }

  private Entry entryOf(String path) {
    Entry[] known = entries;
    for (Entry entry : known) {
      if (entry.path.equals(path)) {
        return entry;
      }
    }
    Entry made = new Entry(path);
    Entry[] more = Arrays.copyOf(known, known.length + 1);
    more[known.length] = made;
    entries = more;
    return made;
  }

  public Map<String, Long> read() {
    Map<String, Long> counts = new TreeMap<>();
    for (Entry entry : entries) {
      counts.put(entry.path, entry.getOpaque());
    }
    return counts;
  }
}
