package dev.tutti;

/** Reports that ranks called operations that do not belong together, with what each rank called. */
public final class MismatchException extends TuttiException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message the calls, each with its ranks
   */
  public MismatchException(String message) {
    super(message);
  }
}
