package dev.tutti.cli.process;

/** Thrown when a command cannot continue; the message says why in one line. */
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

  /** Marks this exception as already printed where it was thrown, and returns it. */
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
