package dev.tutti.store.tcp;

import java.io.IOException;

/**
 * Thrown when a client's bytes are not a valid request; the server closes the connection of that
 * client.
 */
final class ProtocolException extends IOException {
  private static final long serialVersionUID = 1L;

  ProtocolException(String message) {
    super(message);
  }
}
