package dev.tutti.aeron.wire;

/** Thrown when bytes are not a message of a store. */
public final class MalformedMessageException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public MalformedMessageException(String message) {
    super(message);
  }
}
