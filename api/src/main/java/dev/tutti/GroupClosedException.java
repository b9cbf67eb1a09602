package dev.tutti;

/** Reports a call on a process group that was closed or aborted. */
public class GroupClosedException extends IllegalStateException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message the group, the rank and the operation that was refused
   */
  public GroupClosedException(String message) {
    super(message);
  }
}
