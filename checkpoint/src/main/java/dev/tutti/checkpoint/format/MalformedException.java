package dev.tutti.checkpoint.format;

import java.io.IOException;

/** Thrown if a file does not have the format that it should have. */
public final class MalformedException extends IOException {
  private static final long serialVersionUID = 1L;

  /** A file may have texts of any length where others have a name. */
  private static final int LONGEST = 300;

  /**
   * Creates an exception.
   *
   * @param message the fault, of which the first part is kept; whoever knows the file adds its name
   */
  public MalformedException(String message) {
    super(message.length() <= LONGEST ? message : message.substring(0, LONGEST) + "...");
  }
}
