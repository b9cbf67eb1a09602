package dev.tutti.store.tcp;

import dev.tutti.store.JobToken;

/** Thrown when client and server do not have the same token. */
final class TokenException extends RefusedException {
  private static final long serialVersionUID = 1L;

  static final String SAME =
      JobToken.SETTING.name() + " must be the same for the server and all ranks, or unset for all";

  TokenException(String message, boolean mayPass) {
    super(message, mayPass, null);
  }
}
