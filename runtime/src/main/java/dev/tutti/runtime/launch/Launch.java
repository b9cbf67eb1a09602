package dev.tutti.runtime.launch;

import java.util.Map;
import java.util.stream.Collectors;

/**
 * What a launcher says of this process.
 *
 * @param launcher its name in messages
 * @param rank this rank
 * @param size number of ranks, or empty if the launcher does not say
 * @param host of the rank that serves the store, or empty if the launcher does not say
 * @param port of the store, or empty if the launcher does not say
 * @param seen the variables that say so, in the order in which they were read
 */
public record Launch(
    String launcher, String rank, String size, String host, String port, Map<String, String> seen) {
  /** Returns the variables that say so, as one would set them. */
  public String seenText() {
    return text(seen);
  }

  static String text(Map<String, String> variables) {
    return variables.entrySet().stream()
        .map(variable -> variable.getKey() + "=" + variable.getValue())
        .collect(Collectors.joining(", "));
  }
}
