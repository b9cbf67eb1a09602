package dev.tutti.store.tcp;

import java.io.IOException;

/** Thrown when client and server do not have the same token. */
final class TokenException extends IOException {
  private static final long serialVersionUID = 1L;

  /** Whether the cause may be that the server was about to end. */
  final boolean mayPass;

  TokenException(String message, boolean mayPass) {
    super(message);
    this.mayPass = mayPass;
  }
}
