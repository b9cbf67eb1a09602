package dev.tutti.store.file;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A queue in a store file, kept as a record "first next" and one record for each value. */
final class FileQueue {
  private static final String STATE = "tutti/queue";
  private static final String ITEM = "tutti/item/";

  private final String name;
  private final String stateKey;

  /**
   * Creates the queue of a name.
   *
   * @param name the key of the queue, with the slash
   */
  FileQueue(String name) {
    this.name = name;
    this.stateKey = stateKey(name);
  }

  /** Returns the key of the record that exists while the queue of a name is not empty. */
  static String stateKey(String name) {
    return STATE + name;
  }

  void push(FileLog.Changes changes, byte[] value) {
    long[] ends = ends(changes.get(stateKey));
    changes.set(itemKey(ends[1]), value);
    store(changes, ends[0], ends[1] + 1);
  }

  byte @Nullable [] pop(FileLog.Changes changes) {
    long[] ends = ends(changes.get(stateKey));
    if (ends[0] == ends[1]) {
      return null;
    }
    byte[] value = changes.get(itemKey(ends[0]));
    // A process that dies after the first record leaves a value that nobody sees.
    store(changes, ends[0] + 1, ends[1]);
    changes.delete(itemKey(ends[0]));
    return value;
  }

  long length(Map<String, byte[]> values) {
    long[] ends = ends(values.get(stateKey));
    return ends[1] - ends[0];
  }

  private void store(FileLog.Changes changes, long first, long next) {
    if (first == next) {
      changes.delete(stateKey);
    } else {
      changes.set(stateKey, (first + " " + next).getBytes(StandardCharsets.US_ASCII));
    }
  }

  private static long[] ends(byte @Nullable [] state) {
    if (state == null) {
      return new long[2];
    }
    String[] parts = new String(state, StandardCharsets.US_ASCII).split(" ", -1);
    return new long[] {Long.parseLong(parts[0]), Long.parseLong(parts[1])};
  }

  private String itemKey(long number) {
    return ITEM + number + name;
  }
}
