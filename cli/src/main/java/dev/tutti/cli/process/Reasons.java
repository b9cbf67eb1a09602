package dev.tutti.cli.process;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;

/** Puts failures of files into words: several kinds have no message but the file's name. */
public final class Reasons {
  private Reasons() {}

  /**
   * Says what failed, and at which file.
   *
   * @param failure what a call of the JDK threw
   */
  public static String of(IOException failure) {
    return switch (failure) {
      case AccessDeniedException e -> "no permission for " + e.getFile();
      case FileAlreadyExistsException e -> e.getFile() + " is there and is no directory";
      case NoSuchFileException e -> "there is no " + e.getFile();
      case FileSystemException e when e.getReason() == null ->
          e.getClass().getSimpleName() + " at " + e.getFile();
      default -> failure.getMessage() == null ? failure.toString() : failure.getMessage();
    };
  }
}
