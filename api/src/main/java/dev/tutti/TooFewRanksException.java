package dev.tutti;

/** Thrown when too few members are left, or too few processes join, so that nothing has changed. */
@Incubating
public class TooFewRanksException extends TuttiException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed, where, and what was expected
   */
  public TooFewRanksException(String message) {
    super(message);
  }
}
