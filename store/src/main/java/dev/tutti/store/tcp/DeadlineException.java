package dev.tutti.store.tcp;

import java.io.IOException;

/** Thrown when a socket has not done its part by the deadline of a call. */
final class DeadlineException extends IOException {
  private static final long serialVersionUID = 1L;

  DeadlineException(String message) {
    super(message);
  }
}
