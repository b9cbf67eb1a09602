package dev.tutti.store.tcp;

import java.io.IOException;
import org.jspecify.annotations.Nullable;

/** Thrown when a store server and this process do not accept each other. */
abstract class RefusedException extends IOException {
  private static final long serialVersionUID = 1L;

  /**
   * Whether the server closed the connection without replying, as does a server that is shutting
   * down or a proxy whose server is not up yet.
   */
  final boolean mayPass;

  RefusedException(String message, boolean mayPass, @Nullable IOException cause) {
    super(message, cause);
    this.mayPass = mayPass;
  }
}
