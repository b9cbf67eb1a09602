package dev.tutti.checkpoint.format;

import java.io.IOException;

/** Thrown if a file does not have the format that it should have. */
public final class MalformedException extends IOException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception.
   *
   * @param message the fault; whoever has the file adds its name
   */
  public MalformedException(String message) {
    super(message);
  }
}
