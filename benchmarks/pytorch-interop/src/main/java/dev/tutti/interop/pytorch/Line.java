package dev.tutti.interop.pytorch;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * One line of a plan: an operation, words by position, and {@code name=value} options.
 *
 * <p>The lines are those of the libtorch peer and these:
 *
 * <ul>
 *   <li>{@code newgroup RANKS}: all ranks create a subgroup, the first of which is number 1; a line
 *       with {@code group=NUMBER} runs in it, only on its members;
 *   <li>{@code exchange DTYPE COUNT}: each rank sends to each other rank, one pair after another;
 *       leaves what was received, by sender;
 *   <li>{@code ring DTYPE COUNT}: each rank sends to the next and receives from the previous one at
 *       the same time; leaves what was received;
 *   <li>{@code anysource DTYPE COUNT root=RANK}: all other ranks send to the root, which receives
 *       in order of arrival; leaves what was received there, by sender;
 *   <li>{@code alltoall DTYPE COUNT}: with lists of tensors; leaves what was received, by sender;
 *   <li>{@code allgather_coalesced DTYPE COUNTS}: leaves all tensors of rank 0, of rank 1, and so
 *       on.
 * </ul>
 */
final class Line {
  private final String text;
  private final List<String> words = new ArrayList<>();
  private final Map<String, String> options = new HashMap<>();

  Line(String text) {
    this.text = text;
    for (String word : text.split(" ")) {
      int equals = word.indexOf('=');
      if (equals < 0) {
        words.add(word);
      } else {
        options.put(word.substring(0, equals), word.substring(equals + 1));
      }
    }
  }

  String op() {
    return words.getFirst();
  }

  String word(int at) {
    if (at >= words.size()) {
      throw new IllegalArgumentException("'" + text + "' has no word " + at);
    }
    return words.get(at);
  }

  int number(int at) {
    return Integer.parseInt(word(at));
  }

  long[] counts(int at) {
    return numbers(word(at));
  }

  boolean has(String option) {
    return options.containsKey(option);
  }

  String option(String name, String byDefault) {
    return options.getOrDefault(name, byDefault);
  }

  int root() {
    return Integer.parseInt(option("root", ""));
  }

  /** Returns the number of the group to run in; 0 is the group of all ranks. */
  int group() {
    return Integer.parseInt(option("group", "0"));
  }

  /** Returns the ranks that a {@code newgroup} names. */
  List<Integer> ranks() {
    return Arrays.stream(counts(1)).mapToObj(rank -> (int) rank).toList();
  }

  /**
   * Returns how many elements each rank sends to each other rank, indexed by sender, then by
   * receiver.
   */
  long[][] splits() {
    return Arrays.stream(option("splits", "").split(";")).map(Line::numbers).toArray(long[][]::new);
  }

  private static long[] numbers(String list) {
    return Arrays.stream(list.split(",")).mapToLong(Long::parseLong).toArray();
  }

  @Override
  public String toString() {
    return text;
  }
}
