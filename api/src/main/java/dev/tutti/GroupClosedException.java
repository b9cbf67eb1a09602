package dev.tutti;

/** Thrown when this rank calls a process group, or symmetric memory of one, that it has closed. */
public class GroupClosedException extends TuttiException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what is closed, on which rank, and what was refused
   */
  public GroupClosedException(String message) {
    super(message);
  }
}
