package dev.tutti.gradients;

import dev.tutti.ProcessGroup;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** The first failure of a reducer, which it also reports to the other ranks. */
final class StepFailure {
  private final ProcessGroup group;
  private final AtomicReference<@Nullable GradientException> first = new AtomicReference<>();

  StepFailure(ProcessGroup group) {
    this.group = group;
  }

  boolean isThere() {
    return first.get() != null;
  }

  /**
   * Fails the reducer and aborts the group, since the other ranks wait for this one's gradients.
   *
   * @param what what happened, naming the parameter
   * @param parameter the parameter's index, or -1 for several
   * @param cause the underlying cause
   * @return the exception to throw: the first failure, if this is not it
   */
  GradientException fail(String what, int parameter, @Nullable Throwable cause) {
    GradientException failure =
        new GradientException("rank " + group.rank() + ": " + what, parameter, cause);
    GradientException before = first.compareAndExchange(null, failure);
    if (before != null) {
      return again(before);
    }
    if (group.failure().isEmpty() && !group.isClosed()) {
      group.abort(what);
    }
    return failure;
  }

  /** Throws the failure, if there was one, with the stack trace of this call. */
  void check() {
    GradientException failure = first.get();
    if (failure != null) {
      throw again(failure);
    }
  }

  private static GradientException again(GradientException failure) {
    // What caused it says more than the thread that noticed, and each would be printed in full.
    Throwable cause = failure.getCause() == null ? failure : failure.getCause();
    return new GradientException(
        String.valueOf(failure.getMessage()), failure.parameter().orElse(-1), cause);
  }
}
