package dev.tutti.cli;

/** Says in one line why a command cannot go on. */
final class LaunchException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int exitCode;

  LaunchException(int exitCode, String message) {
    this(exitCode, message, null);
  }

  LaunchException(
      int exitCode, String message, @org.jspecify.annotations.Nullable Throwable cause) {
    super(message, cause);
    this.exitCode = exitCode;
  }

  /** Returns the exit code of the process. */
  int exitCode() {
    return exitCode;
  }
}
