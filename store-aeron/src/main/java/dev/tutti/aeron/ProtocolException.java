package dev.tutti.aeron;

/** Reports bytes that are no message of a store. */
final class ProtocolException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  ProtocolException(String message) {
    super(message);
  }
}
