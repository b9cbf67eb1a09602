package dev.tutti.runtime.membership;

/**
 * The requirements of a change.
 *
 * @param fewest the least number of members afterwards
 * @param most the largest number of members afterwards
 * @param joiners the least number of members that join
 * @param mostJoiners the largest number of members that join
 * @param withinNanos how long members wait for each other once they have read the change
 */
public record Rules(int fewest, int most, int joiners, int mostJoiners, long withinNanos) {
  /** Checks the numbers. */
  public Rules {
    if (fewest < 1 || most < fewest || joiners < 0 || mostJoiners < joiners || withinNanos <= 0) {
      throw new IllegalArgumentException("not the rules of a change");
    }
  }

  String encode() {
    return fewest + " " + most + " " + joiners + " " + mostJoiners + " " + withinNanos;
  }

  static Rules decode(String text) {
    String[] parts = text.split(" ", -1);
    if (parts.length != 5) {
      throw new IllegalArgumentException("not the rules of a change: " + parts.length + " parts");
    }
    return new Rules(
        Integer.parseInt(parts[0]),
        Integer.parseInt(parts[1]),
        Integer.parseInt(parts[2]),
        Integer.parseInt(parts[3]),
        Long.parseLong(parts[4]));
  }
}
