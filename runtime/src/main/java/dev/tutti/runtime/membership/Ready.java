package dev.tutti.runtime.membership;

import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.stream.Collectors;

/**
 * What a member says that is ready for a change.
 *
 * @param lost the members that it has found lost
 * @param unreached the members to which it cannot connect
 */
public record Ready(SortedSet<Integer> lost, SortedSet<Integer> unreached) {
  /** Ready, with nothing known of others. */
  public static final Ready PLAIN = new Ready(new TreeSet<>(), new TreeSet<>());

  /** Makes the sets immutable. */
  public Ready {
    lost = Collections.unmodifiableSortedSet(new TreeSet<>(lost));
    unreached = Collections.unmodifiableSortedSet(new TreeSet<>(unreached));
  }

  /** Returns the bytes that the others read. */
  public byte[] encode() {
    return (text(lost) + "\n" + text(unreached)).getBytes(StandardCharsets.UTF_8);
  }

  /**
   * Decodes what a member wrote.
   *
   * @throws IllegalArgumentException if the bytes are not of this kind
   */
  public static Ready decode(byte[] bytes) {
    String[] parts = new String(bytes, StandardCharsets.UTF_8).split("\n", -1);
    if (parts.length != 2) {
      throw new IllegalArgumentException("not a ready member: " + parts.length + " parts");
    }
    return new Ready(numbers(parts[0]), numbers(parts[1]));
  }

  private static String text(SortedSet<Integer> numbers) {
    return numbers.stream().map(String::valueOf).collect(Collectors.joining(" "));
  }

  private static SortedSet<Integer> numbers(String text) {
    SortedSet<Integer> numbers = new TreeSet<>();
    for (String each : text.isEmpty() ? new String[0] : text.split(" ", -1)) {
      numbers.add(Integer.valueOf(each));
    }
    return numbers;
  }
}
