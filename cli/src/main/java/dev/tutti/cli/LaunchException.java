package dev.tutti.cli;

/** Says in one line why a command cannot go on. */
final class LaunchException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int exitCode;
  private boolean said;

  LaunchException(int exitCode, String message) {
    this(exitCode, message, null);
  }

  LaunchException(
      int exitCode, String message, @org.jspecify.annotations.Nullable Throwable cause) {
    super(message, cause);
    this.exitCode = exitCode;
  }

  /** Notes that it was printed where it was thrown, and returns itself. */
  LaunchException said() {
    said = true;
    return this;
  }

  boolean isSaid() {
    return said;
  }

  /** Returns the exit code of the process. */
  int exitCode() {
    return exitCode;
  }
}
