package dev.tutti.contracts.fuzz;

/**
 * The outcome of running a program.
 *
 * @param ending how the run ended
 * @param report what failed, and where
 * @param steps the number of steps that ended, on all ranks
 * @param elements the number of elements of their tensors
 */
record Outcome(Ending ending, String report, long steps, long elements) {
  /** The ways in which a run can end. */
  enum Ending {
    PASSED,
    FAILED,
    HUNG
  }

  boolean isFailure() {
    return ending != Ending.PASSED;
  }

  /** Parses what {@link #toString} wrote. */
  static Outcome parse(String text) {
    String[] parts = text.split(" ", 4);
    return new Outcome(
        Ending.valueOf(parts[0]), parts[3], Long.parseLong(parts[1]), Long.parseLong(parts[2]));
  }

  @Override
  public String toString() {
    return ending + " " + steps + " " + elements + " " + report;
  }
}
