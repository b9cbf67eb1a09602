package dev.tutti.fake;

import dev.tutti.TuttiException;

/** The failure that {@link Faults} made. */
public final class InjectedFaultException extends TuttiException {
  private static final long serialVersionUID = 1L;

  InjectedFaultException(String message) {
    super(message);
  }
}
