package dev.tutti.cli.process;

import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;

/**
 * Descriptions of file failures: several kinds of exceptions have no message but the name of the
 * file, or a number.
 */
public final class Reasons {
  private Reasons() {}

  /**
   * Returns what failed, and for which file.
   *
   * @param failure the exception thrown by the JDK
   */
  public static String of(IOException failure) {
    return switch (failure) {
      case AccessDeniedException e -> "permission denied: " + e.getFile();
      case FileAlreadyExistsException e -> e.getFile() + " exists and is not a directory";
      case NoSuchFileException e -> "no such file or directory: " + e.getFile();
      case NotDirectoryException e -> "not a directory: " + e.getFile();
      case CharacterCodingException _ -> "not text in UTF-8";
      case FileSystemException e when e.getReason() == null ->
          e.getClass().getSimpleName() + " at " + e.getFile();
      default -> failure.getMessage() == null ? failure.toString() : failure.getMessage();
    };
  }
}
