package dev.tutti;

/**
 * Thrown when the server of a store does not answer any request in time, because its process is
 * stopped or its host cannot be reached.
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
