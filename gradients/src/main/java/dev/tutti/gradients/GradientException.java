package dev.tutti.gradients;

import dev.tutti.TuttiException;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * Thrown when the gradients of a step were not reduced, or when ranks have different parameters.
 * The message names the rank, the step, the parameter and what was expected of it.
 */
public final class GradientException extends TuttiException {
  private static final long serialVersionUID = 1L;

  private final int parameter;

  /**
   * Creates an exception.
   *
   * @param message what failed, where, and what was expected
   * @param parameter the parameter's index, or -1 if several are involved or only another rank has
   *     it
   * @param cause the underlying cause, if any
   */
  public GradientException(String message, int parameter, @Nullable Throwable cause) {
    super(message, cause);
    this.parameter = parameter;
  }

  /**
   * Returns the index of the parameter that this rank found wrong. It is empty if several are
   * involved, or if another rank found the error and the message quotes that rank.
   */
  public OptionalInt parameter() {
    return parameter < 0 ? OptionalInt.empty() : OptionalInt.of(parameter);
  }
}
