package dev.tutti;

import dev.tutti.spi.ProcessGroupFactory;
import dev.tutti.spi.ServiceAdvice;

/** A lookup for the runtime. */
final class RuntimeLookup {
  private static final ServiceAdvice RUNTIME =
      new ServiceAdvice(
          "dev.tutti.runtime.group.RuntimeFactory", "tutti-runtime", "dev.tutti.runtime");

  private RuntimeLookup() {}

  /**
   * Returns the runtime.
   *
   * @throws BackendException if there is no runtime, naming the jar that provides it, or if there
   *     are several
   */
  static ProcessGroupFactory find() {
    ProcessGroupFactory found = Services.find(ProcessGroupFactory.class, "are runtimes");
    if (found == null) {
      throw new BackendException(
          "no runtime was found; "
              + RUNTIME.of(ProcessGroupFactory.class, RuntimeLookup.class)
              + " (the jars of the backends, such as tutti-backend-gloo, depend on tutti-runtime)");
    }
    return found;
  }
}
