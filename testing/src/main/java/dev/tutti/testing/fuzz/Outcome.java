package dev.tutti.testing.fuzz;

/**
 * Says how the run of a program ended.
 *
 * @param kind how
 * @param report what failed, and where
 * @param steps number of steps that ended, on all ranks
 * @param elements number of elements of their tensors
 */
record Outcome(Kind kind, String report, long steps, long elements) {
  /** Names ways to end. */
  enum Kind {
    PASSED,
    FAILED,
    HUNG
  }

  boolean isFailure() {
    return kind != Kind.PASSED;
  }

  /** Reads what {@link #toString} wrote. */
  static Outcome parse(String text) {
    String[] parts = text.split(" ", 4);
    return new Outcome(
        Kind.valueOf(parts[0]), parts[3], Long.parseLong(parts[1]), Long.parseLong(parts[2]));
  }

  @Override
  public String toString() {
    return kind + " " + steps + " " + elements + " " + report;
  }
}
