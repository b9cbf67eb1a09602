package dev.tutti.gloo.shm;

import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.HexFormat;

/**
 * Names the files of shared memory, and removes the files of processes that died before they could
 * do so.
 */
public final class StaleFiles {
  /*
   * A process number is meaningful only within its PID namespace: containers that share the
   * directory may have different namespaces. A name therefore includes the namespace, and no file
   * of another namespace is touched.
   */
  private static final String PREFIX = "tutti-";
  private static final int WORDS = 4;
  private static final int PROCESS_DIGITS = 18;
  private static final int NAMESPACE_DIGITS = 20;
  private static final int RANDOM_DIGITS = 16;
  private static final Path NAMESPACE = Path.of("/proc/self/ns/pid");

  private StaleFiles() {}

  /** Returns a name that no other file has and nobody can guess. */
  public static String newName() {
    return PREFIX
        + ProcessHandle.current().pid()
        + "-"
        + namespace()
        + "-"
        + HexFormat.of().toHexDigits(new SecureRandom().nextLong());
  }

  /** Tells whether a text may come from {@link #newName()}, in this process or another one. */
  public static boolean isName(String text) {
    String[] words = text.startsWith(PREFIX) ? text.split("-", -1) : new String[0];
    return words.length == WORDS
        && !words[1].isEmpty()
        && words[1].length() <= PROCESS_DIGITS
        && has(words[1], '9')
        && !words[2].isEmpty()
        && words[2].length() <= NAMESPACE_DIGITS
        && has(words[2], '9')
        && words[3].length() == RANDOM_DIGITS
        && has(words[3], 'f');
  }

  /**
   * Tells whether a text consists only of digits, up to the given highest one, which is 9 or
   * greater.
   */
  private static boolean has(String text, char last) {
    boolean all = true;
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      all &= (c >= '0' && c <= '9') || (c >= 'a' && c <= last);
    }
    return all;
  }

  /** Returns the number of this process's PID namespace, or 0 if it is unknown. */
  static String namespace() {
    try {
      String digits = Files.readSymbolicLink(NAMESPACE).toString().replaceAll("[^0-9]", "");
      return digits.isEmpty() ? "0" : digits;
    } catch (IOException | UnsupportedOperationException e) {
      return "0";
    }
  }

  /**
   * Removes the files left behind by dead processes of this user; another user's files cannot be
   * removed.
   */
  public static void remove(Path directory) throws IOException {
    String own = namespace();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, PREFIX + "*")) {
      for (Path file : files) {
        String name = String.valueOf(file.getFileName());
        String[] words = name.split("-", -1);
        if (isName(name)
            && words[2].equals(own)
            && ProcessHandle.of(Long.parseLong(words[1])).isEmpty()) {
          tryDelete(file);
        }
      }
    } catch (DirectoryIteratorException e) {
      throw e.getCause();
    }
  }

  private static void tryDelete(Path file) {
    try {
      Files.deleteIfExists(file);
    } catch (IOException e) {
      System.getLogger(StaleFiles.class.getName())
          .log(System.Logger.Level.DEBUG, "cannot remove " + file, e);
    }
  }
}
