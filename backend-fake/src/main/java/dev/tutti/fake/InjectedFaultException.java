package dev.tutti.fake;

import dev.tutti.TuttiException;

/** Thrown for a failure injected by {@link Faults}. */
public final class InjectedFaultException extends TuttiException {
  private static final long serialVersionUID = 1L;

  InjectedFaultException(String message) {
    super(message);
  }
}
