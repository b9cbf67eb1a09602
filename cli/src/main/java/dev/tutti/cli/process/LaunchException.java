package dev.tutti.cli.process;

/** Says in one line why a command cannot go on. */
public final class LaunchException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int exitCode;
  private boolean said;

  public LaunchException(int exitCode, String message) {
    this(exitCode, message, null);
  }

  public LaunchException(
      int exitCode, String message, @org.jspecify.annotations.Nullable Throwable cause) {
    super(message, cause);
    this.exitCode = exitCode;
  }

  /** Notes that it was printed where it was thrown, and returns itself. */
  public LaunchException said() {
    said = true;
    return this;
  }

  public boolean isSaid() {
    return said;
  }

  /** Returns the exit code of the process. */
  public int exitCode() {
    return exitCode;
  }
}
