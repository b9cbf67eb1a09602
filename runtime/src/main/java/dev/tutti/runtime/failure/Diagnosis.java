package dev.tutti.runtime.failure;

import dev.tutti.spi.Printable;
import java.nio.charset.StandardCharsets;

/**
 * A finding about a failure, made after it was reported.
 *
 * @param failedRank the rank to blame, or -1
 * @param text the finding in words, or empty
 */
public record Diagnosis(int failedRank, String text) {
  static final Diagnosis NONE = new Diagnosis(-1, "");

  /** Joins two findings; the first rank blamed counts. */
  Diagnosis and(Diagnosis other) {
    String both = text + (text.isEmpty() || other.text.isEmpty() ? "" : ", ") + other.text;
    return new Diagnosis(failedRank < 0 ? other.failedRank : failedRank, both);
  }

  /** Puts what was found on the way to this finding before it. */
  Diagnosis after(CharSequence way) {
    return new Diagnosis(failedRank, way + text);
  }

  byte[] encode() {
    return (failedRank + "\n" + text).getBytes(StandardCharsets.UTF_8);
  }

  static Diagnosis decode(byte[] bytes) {
    String[] parts = new String(bytes, StandardCharsets.UTF_8).split("\n", 2);
    return new Diagnosis(
        Integer.parseInt(parts[0]), parts.length < 2 ? "" : Printable.line(parts[1]));
  }
}
