package dev.tutti.aeron.wire;

/** Reports bytes that are no message of a store. */
public final class MalformedMessageException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public MalformedMessageException(String message) {
    super(message);
  }
}
