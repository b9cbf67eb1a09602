package dev.tutti.internal;

import java.nio.charset.StandardCharsets;

/**
 * Is what was found out about a failure after it was reported.
 *
 * @param failedRank the rank to blame, or -1
 * @param text in words, or empty
 */
record Finding(int failedRank, String text) {
  static final Finding NONE = new Finding(-1, "");

  /** Joins two findings; the first blame counts. */
  Finding and(Finding other) {
    String both = text + (text.isEmpty() || other.text.isEmpty() ? "" : ", ") + other.text;
    return new Finding(failedRank < 0 ? other.failedRank : failedRank, both);
  }

  byte[] encode() {
    return (failedRank + "\n" + text).getBytes(StandardCharsets.UTF_8);
  }

  static Finding decode(byte[] bytes) {
    String[] parts = new String(bytes, StandardCharsets.UTF_8).split("\n", 2);
    return new Finding(Integer.parseInt(parts[0]), parts.length < 2 ? "" : parts[1]);
  }
}
