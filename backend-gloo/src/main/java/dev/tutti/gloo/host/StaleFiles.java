package dev.tutti.gloo.host;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Names the files of shared memory, and removes those of processes that died before they could. */
final class StaleFiles {
  /*
   * A number of a process means something in its PID namespace only: containers that share the
   * directory may have different ones. So a name holds the namespace too, and no file of another
   * namespace is touched.
   */
  private static final Pattern NAME =
      Pattern.compile("tutti-([0-9]{1,18})-([0-9]{1,20})-[0-9a-f]{16}");
  private static final Path NAMESPACE = Path.of("/proc/self/ns/pid");

  private StaleFiles() {}

  /** Returns a name that no other file has, nor anybody can guess. */
  static String newName() {
    return "tutti-"
        + ProcessHandle.current().pid()
        + "-"
        + namespace()
        + "-"
        + HexFormat.of().toHexDigits(new SecureRandom().nextLong());
  }

  /** Tells whether a text may be from {@link #newName()}, of this process or another one. */
  static boolean isName(String text) {
    return NAME.matcher(text).matches();
  }

  /** Returns the number of this process's PID namespace, 0 if that is unknown. */
  static String namespace() {
    try {
      String digits = Files.readSymbolicLink(NAMESPACE).toString().replaceAll("[^0-9]", "");
      return digits.isEmpty() ? "0" : digits;
    } catch (IOException | UnsupportedOperationException e) {
      return "0";
    }
  }

  /** Removes what is left of this user's dead processes; another user's files cannot be removed. */
  static void remove(Path directory) throws IOException {
    String own = namespace();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, "tutti-*")) {
      for (Path file : files) {
        Matcher matcher = NAME.matcher(file.getFileName().toString());
        if (matcher.matches() && matcher.group(2).equals(own)) {
          Optional<ProcessHandle> maker = ProcessHandle.of(Long.parseLong(matcher.group(1)));
          if (maker.isEmpty()) {
            tryDelete(file);
          }
        }
      }
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
