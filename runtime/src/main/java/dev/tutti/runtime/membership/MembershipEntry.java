package dev.tutti.runtime.membership;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** An entry of the log of a job that decides who is a member. */
public sealed interface MembershipEntry {
  /*
   * The first byte is a mark that readers of failures skip; a letter distinguishes the kinds. Texts
   * that may contain anything come last.
   */

  /** The mark with which each entry begins. */
  char MARK = 4;

  /**
   * A process waits to join.
   *
   * @param name its name, which no other process has
   */
  record Waiting(String name) implements MembershipEntry {
    @Override
    public String text() {
      return "W\n" + name;
    }
  }

  /**
   * A process waits no longer.
   *
   * @param name its name
   */
  record Withdrawn(String name) implements MembershipEntry {
    @Override
    public String text() {
      return "X\n" + name;
    }
  }

  /**
   * A member requests a change.
   *
   * @param base the generation that is to change
   * @param by the member
   * @param first how many members generation 0 has
   * @param rules what the change requires
   */
  record Change(long base, int by, int first, Rules rules) implements MembershipEntry {
    @Override
    public String text() {
      return "C\n" + base + "\n" + by + "\n" + first + "\n" + rules.encode();
    }
  }

  /**
   * A change is over, and its place is the number of the new generation.
   *
   * @param change the change
   * @param base the generation that changed
   * @param by the member that proposed it
   * @param plan who leaves and who joins
   */
  record Generation(long change, long base, int by, ChangePlan plan) implements MembershipEntry {
    @Override
    public String text() {
      StringBuilder text = new StringBuilder("G\n" + change + "\n" + base + "\n" + by + "\n");
      text.append(String.join(" ", plan.joined()));
      plan.leftOut()
          .forEach((number, why) -> text.append('\n').append(number).append(' ').append(why));
      return text.toString();
    }
  }

  /**
   * A change is over, and nothing has changed.
   *
   * @param change the change
   * @param by the member that gave it up
   * @param why the reason, in words
   */
  record Abandoned(long change, int by, String why) implements MembershipEntry {
    @Override
    public String text() {
      return "A\n" + change + "\n" + by + "\n" + why;
    }
  }

  /** Returns the entry as text. */
  String text();

  /** Returns the bytes of the entry in the log. */
  default byte[] encode() {
    return (MARK + text()).getBytes(StandardCharsets.UTF_8);
  }

  /**
   * Decodes an entry of the log.
   *
   * @return the entry; null if it is of another kind
   * @throws IllegalArgumentException if it is of this kind but cannot be read
   */
  static @Nullable MembershipEntry decode(byte[] bytes) {
    if (bytes.length == 0 || bytes[0] != MARK) {
      return null;
    }
    String[] lines = new String(bytes, StandardCharsets.UTF_8).substring(1).split("\n", -1);
    try {
      return switch (lines[0]) {
        case "W" -> new Waiting(lines[1]);
        case "X" -> new Withdrawn(lines[1]);
        case "C" ->
            new Change(
                Long.parseLong(lines[1]),
                Integer.parseInt(lines[2]),
                Integer.parseInt(lines[3]),
                Rules.decode(lines[4]));
        case "G" ->
            new Generation(
                Long.parseLong(lines[1]),
                Long.parseLong(lines[2]),
                Integer.parseInt(lines[3]),
                new ChangePlan(leftOut(lines), names(lines[4])));
        case "A" -> new Abandoned(Long.parseLong(lines[1]), Integer.parseInt(lines[2]), lines[3]);
        default -> null;
      };
    } catch (ArrayIndexOutOfBoundsException e) {
      throw new IllegalArgumentException("an entry that is too short: " + lines[0], e);
    }
  }

  private static SortedMap<Integer, String> leftOut(String[] lines) {
    SortedMap<Integer, String> leftOut = new TreeMap<>();
    for (String line : Arrays.asList(lines).subList(5, lines.length)) {
      String[] parts = line.split(" ", 2);
      leftOut.put(Integer.valueOf(parts[0]), parts[1]);
    }
    return leftOut;
  }

  private static List<String> names(String text) {
    return text.isEmpty() ? List.of() : List.of(text.split(" ", -1));
  }
}
