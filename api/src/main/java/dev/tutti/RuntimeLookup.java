package dev.tutti;

import dev.tutti.spi.ProcessGroupFactory;

/** A lookup for the runtime. */
final class RuntimeLookup {
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
          "no runtime on the class path; add the jar tutti-runtime, on which the jars of the"
              + " backends, such as tutti-backend-gloo, depend");
    }
    return found;
  }
}
