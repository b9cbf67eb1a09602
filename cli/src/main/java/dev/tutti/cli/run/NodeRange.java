package dev.tutti.cli.run;

import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * How nodes come and go while a job runs.
 *
 * @param fewest the number of nodes with which the job starts, and below which it waits for others
 * @param most the number that there may be at once
 * @param store the URL of the store at which they meet, if none of them serves it
 */
public record NodeRange(int fewest, int most, Optional<String> store) {
  private static final Pattern FORM = Pattern.compile("(-?\\d{1,9})(?::(-?\\d{1,9}))?");

  /**
   * Parses what {@code --nnodes} says, a number or two.
   *
   * @param store the URL of the store, if none of them serves it
   * @throws IllegalArgumentException if it is neither, or the first one exceeds the second
   */
  static NodeRange parse(String nnodes, Optional<String> store) {
    Matcher matcher = FORM.matcher(nnodes.strip());
    if (!matcher.matches()) {
      throw new IllegalArgumentException("--nnodes must be N or MIN:MAX, not '" + nnodes + "'");
    }
    int fewest = Integer.parseInt(matcher.group(1));
    int most = matcher.group(2) == null ? fewest : Integer.parseInt(matcher.group(2));
    if (fewest < 1) {
      throw new IllegalArgumentException("--nnodes must be at least 1, not " + nnodes);
    }
    if (most < fewest) {
      throw new IllegalArgumentException(
          "MIN must be at most MAX in --nnodes=MIN:MAX, not " + nnodes);
    }
    return new NodeRange(fewest, most, store);
  }

  /** Returns whether the number of nodes may change. */
  boolean isOpen() {
    return fewest < most;
  }
}
