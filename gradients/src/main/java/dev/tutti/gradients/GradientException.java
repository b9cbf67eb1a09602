package dev.tutti.gradients;

import dev.tutti.TuttiException;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * Reports that the gradients of a step were not reduced, or that ranks have different parameters:
 * the rank, the step, the parameter and what was expected of it.
 */
public final class GradientException extends TuttiException {
  private static final long serialVersionUID = 1L;

  private final int parameter;

  /**
   * Creates an exception.
   *
   * @param message what failed, where, and what was expected
   * @param parameter its index, or -1 where several are concerned or another rank knows it
   * @param cause the failure below, if there is one
   */
  public GradientException(String message, int parameter, @Nullable Throwable cause) {
    super(message, cause);
    this.parameter = parameter;
  }

  /**
   * Returns the index of the parameter that this rank found wrong; empty where several are
   * concerned, or where another rank found it and the message has what that rank said.
   */
  public OptionalInt parameter() {
    return parameter < 0 ? OptionalInt.empty() : OptionalInt.of(parameter);
  }
}
