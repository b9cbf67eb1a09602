package dev.tutti.runtime.view;

import dev.tutti.runtime.failure.Evidence;
import java.util.Map;

/**
 * The failure of a group in the record of a rank.
 *
 * @param evidence what the rank judged
 * @param verdict the rank in the group that it blamed, or -1
 * @param text what happened, as it threw it
 */
public record RecordedFailure(Evidence evidence, long verdict, String text) {
  /**
   * Reads a failure.
   *
   * @param map what JSON has of it
   * @throws IllegalArgumentException if the map is no failure
   */
  static RecordedFailure of(Map<?, ?> map) {
    if (map.get("verdict") instanceof Number verdict && map.get("text") instanceof String text) {
      return new RecordedFailure(Evidence.of(map), verdict.longValue(), text);
    }
    throw new IllegalArgumentException("it has no verdict");
  }

  /** Returns whether another rank found who is to blame. */
  boolean isAdopted() {
    return evidence.adopted() != null;
  }
}
