package dev.tutti.gloo.shm;

import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

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
  private static final Pattern NAME =
      Pattern.compile(PREFIX + "([0-9]{1,18})-([0-9]{1,20})-[0-9a-f]{16}");
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

  /** Returns whether a text may come from {@link #newName()}, in this process or another one. */
  public static boolean isName(String text) {
    return NAME.matcher(text).matches();
  }

  /** Creates an empty file with a new name, which only this user can open. */
  public static Path create(Path directory) throws IOException {
    return Files.createFile(
        directory.resolve(newName()),
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
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
        Matcher name = NAME.matcher(String.valueOf(file.getFileName()));
        if (name.matches()
            && name.group(2).equals(own)
            && ProcessHandle.of(Long.parseLong(name.group(1))).isEmpty()) {
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
