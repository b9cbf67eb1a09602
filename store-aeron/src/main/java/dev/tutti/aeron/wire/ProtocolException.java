package dev.tutti.aeron.wire;

/** Reports bytes that are no message of a store. */
public final class ProtocolException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public ProtocolException(String message) {
    super(message);
  }
}
