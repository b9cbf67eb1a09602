package dev.tutti.gloo.topology;

import java.util.Arrays;
import java.util.stream.Collectors;

/** Reads and writes the lists of ranks kept in the store. */
public final class RankList {
  private static final int MAX_DIGITS = 9;

  private RankList() {}

  /** Returns the maximum number of characters that ranks of a group may take. */
  static int maxLength(int size) {
    return size * (Integer.toString(size).length() + 1);
  }

  /** Returns ranks as in {@code 0,2,3}. */
  public static String join(int[] ranks) {
    return Arrays.stream(ranks).mapToObj(String::valueOf).collect(Collectors.joining(","));
  }

  /**
   * Reads ranks.
   *
   * @param text text from {@link #join}, listing a leader and the ranks that it leads
   * @param leader the rank that must come first
   * @param size the number of ranks of the group
   * @throws IllegalArgumentException if the text is not such a list, or the ranks are not ascending
   */
  static int[] split(String text, int leader, int size) {
    if (text.length() > maxLength(size)) {
      throw new IllegalArgumentException("a list of ranks has " + text.length() + " characters");
    }
    String[] words = text.split(",", -1);
    int[] ranks = new int[words.length];
    for (int i = 0; i < ranks.length; i++) {
      ranks[i] = parse(words[i]);
      boolean next = i == 0 ? ranks[0] == leader : ranks[i] > ranks[i - 1];
      if (!next || ranks[i] >= size) {
        throw new IllegalArgumentException(
            "expected rank " + leader + ", then ascending ranks of 0.." + (size - 1) + ": " + text);
      }
    }
    return ranks;
  }

  /**
   * Reads a rank.
   *
   * @throws IllegalArgumentException if it is not a number of at least 0
   */
  static int parse(String text) {
    boolean digits = !text.isEmpty();
    for (int i = 0; i < text.length(); i++) {
      digits &= text.charAt(i) >= '0' && text.charAt(i) <= '9';
    }
    if (!digits || text.length() > MAX_DIGITS) {
      throw new IllegalArgumentException("not a rank: '" + text + "'");
    }
    return Integer.parseInt(text);
  }
}
