package dev.tutti.store.file;

import dev.tutti.StoreException;
import dev.tutti.store.table.Arguments;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A barrier in a store file, kept as a record "round arrived size". */
final class FileBarrier {
  private static final String STATE = "tutti/barrier";

  private final String name;
  private final String key;
  private final int size;

  /**
   * Creates the barrier of a name.
   *
   * @param name the key of the barrier, with the slash
   * @param size the number of members
   */
  FileBarrier(String name, int size) {
    this.name = name;
    this.key = STATE + name;
    this.size = size;
  }

  /** Joins the barrier; returns the round to wait for, or -1 if this was the last member. */
  long join(FileLog.Changes changes) {
    State now = state(changes.get(key));
    if (now.arrived > 0 && now.size != size) {
      throw new StoreException(Arguments.sizeMessage(FileLog.userKey(name), now.size, size));
    }
    boolean last = now.arrived + 1 == size;
    store(changes, last ? now.round + 1 : now.round, last ? 0 : now.arrived + 1);
    return last ? -1 : now.round;
  }

  /** Leaves the barrier again; returns whether it was too late because all members had come. */
  boolean leave(FileLog.Changes changes, long round) {
    State now = state(changes.get(key));
    if (now.round != round) {
      return true;
    }
    store(changes, round, now.arrived - 1);
    return false;
  }

  long round(Map<String, byte[]> values) {
    return state(values.get(key)).round;
  }

  int arrived(Map<String, byte[]> values) {
    return state(values.get(key)).arrived;
  }

  private void store(FileLog.Changes changes, long round, int arrived) {
    String text = round + " " + arrived + " " + size;
    changes.set(key, text.getBytes(StandardCharsets.US_ASCII));
  }

  private State state(byte @Nullable [] text) {
    if (text == null) {
      return new State(0, 0, size);
    }
    String[] parts = new String(text, StandardCharsets.US_ASCII).split(" ", -1);
    return new State(
        Long.parseLong(parts[0]), Integer.parseInt(parts[1]), Integer.parseInt(parts[2]));
  }

  private record State(long round, int arrived, int size) {}
}
