package dev.tutti.store.tcp;

import java.io.IOException;
import org.jspecify.annotations.Nullable;

/** Thrown when a store server and this process do not accept each other. */
abstract class RefusedException extends IOException {
  private static final long serialVersionUID = 1L;

  /**
   * Whether the server only closed the connection, as a server that ends also does, and a proxy
   * whose server has not started.
   */
  final boolean mayPass;

  RefusedException(String message, boolean mayPass, @Nullable IOException cause) {
    super(message, cause);
    this.mayPass = mayPass;
  }
}
