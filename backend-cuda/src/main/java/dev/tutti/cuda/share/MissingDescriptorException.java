package dev.tutti.cuda.share;

import dev.tutti.BackendException;

/** Reports that a rank has gone on without taking part; it knows why. */
final class MissingDescriptorException extends BackendException {
  private static final long serialVersionUID = 1L;

  MissingDescriptorException(String message) {
    super(message);
  }
}
