package dev.tutti.store.tcp;

/** Thrown when client and server do not have the same token. */
final class TokenException extends RefusedException {
  private static final long serialVersionUID = 1L;

  TokenException(String message, boolean mayPass) {
    super(message, mayPass, null);
  }
}
