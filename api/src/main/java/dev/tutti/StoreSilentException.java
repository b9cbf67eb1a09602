package dev.tutti;

/**
 * Thrown when a store does not answer in time, whatever it holds: the process of its server is
 * stopped, its host cannot be reached, or others keep its file locked.
 */
public final class StoreSilentException extends StoreTimeoutException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what happened
   */
  public StoreSilentException(String message) {
    super(message);
  }

  /**
   * Creates an exception.
   *
   * @param message what happened
   * @param cause the underlying cause
   */
  public StoreSilentException(String message, Throwable cause) {
    super(message, cause);
  }
}
