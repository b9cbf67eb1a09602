package dev.tutti.gloo.host;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Names the files of shared memory, and removes those of processes that died before they could. */
final class StaleFiles {
  private static final Pattern NAME = Pattern.compile("tutti-([0-9]{1,18})-[0-9a-f]{16}");

  private StaleFiles() {}

  static String name(long pid, String unique) {
    return "tutti-" + pid + "-" + unique;
  }

  /** Removes what is left of this user's dead processes; another user's files cannot be removed. */
  static void remove(Path directory) throws IOException {
    try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, "tutti-*")) {
      for (Path file : files) {
        Matcher matcher = NAME.matcher(file.getFileName().toString());
        if (matcher.matches()) {
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
