package dev.tutti;

/**
 * Thrown when the other members went on without this process, which may join again as a new member.
 */
@Incubating
public class ExpelledException extends TuttiException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed, where, and what was expected
   */
  public ExpelledException(String message) {
    super(message);
  }
}
