package dev.tutti.cli.process;

/** A static method that writes numbers of things. */
public final class Counts {
  private Counts() {}

  /**
   * Returns a number with its noun, as in "1 rank" and "2 ranks".
   *
   * @param number how many there are
   * @param noun what there is, in the singular; its plural ends in s
   */
  public static String of(long number, String noun) {
    return number + " " + noun + (number == 1 ? "" : "s");
  }
}
