package dev.tutti.store.tcp;

import java.io.IOException;

/** Reports bytes of a client that no request has; the server closes that client. */
final class ProtocolException extends IOException {
  private static final long serialVersionUID = 1L;

  ProtocolException(String message) {
    super(message);
  }
}
