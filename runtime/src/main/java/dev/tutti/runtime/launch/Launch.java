package dev.tutti.runtime.launch;

import java.util.Map;
import java.util.stream.Collectors;

/**
 * What a launcher passes this process.
 *
 * @param launcher the launcher's name in messages
 * @param rank this rank
 * @param size the number of ranks, or empty if the launcher does not say
 * @param host the host of the rank that serves the store, or empty if the launcher does not say
 * @param port the port of the store, or empty if the launcher does not say
 * @param seen the variables that contain this information, in the order in which they were read
 */
public record Launch(
    String launcher, String rank, String size, String host, String port, Map<String, String> seen) {
  /** Returns those variables in the form in which one would set them. */
  public String seenText() {
    return text(seen);
  }

  static String text(Map<String, String> variables) {
    return variables.entrySet().stream()
        .map(variable -> variable.getKey() + "=" + variable.getValue())
        .collect(Collectors.joining(", "));
  }
}
