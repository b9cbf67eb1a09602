package dev.tutti.cli.run;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;

/**
 * A file that keeps the classes that Java ranks have loaded and linked, so that later ranks start
 * from it (JEP 514).
 *
 * <p>If the file does not exist, the first rank of the node writes one as it ends; it is kept if
 * all ranks succeed.
 *
 * @param file the path of the file
 */
record AotCache(Path file) {
  /** Checks that the file can be written. */
  AotCache {
    if (Files.isDirectory(file)) {
      throw new IllegalArgumentException("--aot must be a file, but " + file + " is a folder");
    }
    Path folder = file.toAbsolutePath().getParent();
    if (folder == null || !Files.isDirectory(folder)) {
      throw new IllegalArgumentException("--aot " + file + ": no such folder");
    }
  }

  /**
   * Returns a command that uses the file, or writes it.
   *
   * @param command the command, which must start with java
   * @param local the number of the rank on this node
   * @throws IllegalArgumentException if the command does not start with java
   */
  List<String> command(List<String> command, int local) {
    check(command);
    List<String> changed = new ArrayList<>(command);
    if (Files.exists(file)) {
      changed.add(1, "-XX:AOTCache=" + file);
    } else if (local == 0) {
      changed.add(1, "-XX:AOTCacheOutput=" + written());
      changed.add(2, "-Xlog:aot=error");
    }
    return changed;
  }

  /**
   * Checks that a command can use such a file.
   *
   * @throws IllegalArgumentException if the command does not start with java
   */
  static void check(List<String> command) {
    Path program = Path.of(command.getFirst()).getFileName();
    if (program == null || !program.toString().equals("java")) {
      throw new IllegalArgumentException(
          "--aot works only for commands that start with java, not with " + command.getFirst());
    }
  }

  /** Ends a run: keeps the written file if all ranks succeeded, and otherwise deletes it. */
  void end(boolean well) throws IOException {
    if (well && Files.exists(written())) {
      Files.move(written(), file, StandardCopyOption.ATOMIC_MOVE);
    } else {
      Files.deleteIfExists(written());
      // The JVM writes this file first, and leaves it if it is ended before it finishes.
      Files.deleteIfExists(Path.of(written() + ".config"));
    }
  }

  private Path written() {
    return file.resolveSibling(file.getFileName() + "." + ProcessHandle.current().pid());
  }
}
