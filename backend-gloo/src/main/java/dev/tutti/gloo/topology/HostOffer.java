package dev.tutti.gloo.topology;

import dev.tutti.gloo.shm.StaleFiles;
import java.nio.charset.StandardCharsets;

/**
 * The message that a rank publishes to find the other ranks of its host.
 *
 * @param probe the name of its file, empty if it has none
 * @param budget the number of bytes that it would share
 * @param twoLevel whether it would share memory even if not all ranks of the group can
 */
public record HostOffer(String probe, long budget, boolean twoLevel) {
  private static final int MAX_BYTES = 256;
  private static final int WORDS = 3;
  private static final String TWO_LEVEL = "two-level";
  private static final String ONE_LEVEL = "one-level";

  /**
   * Reads an offer.
   *
   * @param bytes the value from the store
   * @throws IllegalArgumentException if it does not have this form
   */
  public static HostOffer read(byte[] bytes) {
    if (bytes.length > MAX_BYTES) {
      throw new IllegalArgumentException(
          bytes.length + " bytes, at most " + MAX_BYTES + " expected");
    }
    String text = new String(bytes, StandardCharsets.UTF_8);
    String[] words = text.split(" ", -1);
    boolean right =
        words.length == WORDS
            && (words[0].isEmpty() || StaleFiles.isName(words[0]))
            && (words[2].equals(TWO_LEVEL) || words[2].equals(ONE_LEVEL));
    if (!right) {
      throw new IllegalArgumentException("not an offer to share memory");
    }
    return new HostOffer(words[0], Long.parseLong(words[1]), words[2].equals(TWO_LEVEL));
  }

  public byte[] toBytes() {
    String text = probe + " " + budget + " " + (twoLevel ? TWO_LEVEL : ONE_LEVEL);
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
