package dev.tutti.runtime.operation;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;

/**
 * Counts the collectives of a group by the path that they took. Only the thread that has the turn
 * counts, so no step is atomic and nothing is allocated for a known path; any thread may read.
 */
public final class PathCounts {
  private static final VarHandle COUNT;

  static {
    try {
      COUNT = MethodHandles.lookup().findVarHandle(Entry.class, "count", long.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private volatile Entry[] entries = {};
  private Entry last = new Entry("");

  private static final class Entry {
    private final String path;
    private long count;

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
    COUNT.setOpaque(entry, entry.count + 1);
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
      counts.put(entry.path, (long) COUNT.getOpaque(entry));
    }
    return counts;
  }
}
