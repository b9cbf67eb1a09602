package dev.tutti.testing;

/** The deliberate failure of a contract suite; logs show it as one line. */
final class DeliberateFault extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates a fault.
   *
   * @param where it is thrown
   */
  DeliberateFault(String where) {
    super("thrown on purpose by the contract suite: " + where, null, false, false);
  }
}
