package dev.tutti;

/**
 * Reports that the server of a store did not answer in time, whatever was asked: its process is
 * stopped, or its host cannot be reached.
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
   * @param cause the failure below
   */
  public StoreSilentException(String message, Throwable cause) {
    super(message, cause);
  }
}
