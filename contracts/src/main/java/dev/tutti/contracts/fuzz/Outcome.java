package dev.tutti.contracts.fuzz;

/**
 * The outcome of running a program.
 *
 * @param kind how the run ended
 * @param report what failed, and where
 * @param steps the number of steps that ended, on all ranks
 * @param elements the number of elements of their tensors
 */
record Outcome(Kind kind, String report, long steps, long elements) {
  /** The ways in which a run can end. */
  enum Kind {
    PASSED,
    FAILED,
    HUNG
  }

  boolean isFailure() {
    return kind != Kind.PASSED;
  }

  /** Parses what {@link #toString} wrote. */
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
