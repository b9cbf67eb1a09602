package dev.tutti;

/** Reports a call on a process group, or on symmetric memory of one, that this rank closed. */
public class GroupClosedException extends TuttiException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what is closed, the rank and what was refused
   */
  public GroupClosedException(String message) {
    super(message);
  }
}
