package dev.tutti.lightgbm;

import dev.tutti.TuttiException;
import org.jspecify.annotations.Nullable;

/** Thrown when a LightGBM call failed, or the native library cannot be used. */
public final class LightGbmException extends TuttiException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message what failed
   * @param cause the failure below, if there is one
   */
  LightGbmException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
