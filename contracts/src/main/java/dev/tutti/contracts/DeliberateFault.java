package dev.tutti.contracts;

/** The deliberate failure of a contract suite, which logs show as a single line. */
final class DeliberateFault extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates a fault.
   *
   * @param where where it is thrown
   */
  DeliberateFault(String where) {
    super("thrown on purpose by the contract suite: " + where, null, false, false);
  }
}
