package dev.tutti.cuda.share;

import dev.tutti.BackendException;

/** Thrown when a rank has moved on without taking part; that rank reports why. */
final class MissingDescriptorException extends BackendException {
  private static final long serialVersionUID = 1L;

  MissingDescriptorException(String message) {
    super(message);
  }
}
