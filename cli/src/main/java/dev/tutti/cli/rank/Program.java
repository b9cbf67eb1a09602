package dev.tutti.cli.rank;

import dev.tutti.cli.process.LaunchException;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

/** Finds programs as a shell does, by a path or by a name to search for in {@code PATH}. */
public final class Program {
  private Program() {}

  /**
   * Finds a program.
   *
   * @param name a path, or a name to search for in {@code PATH}
   * @param environment the environment, which holds {@code PATH}
   */
  public static Optional<Path> find(String name, Map<String, String> environment) {
    return candidates(name, environment).filter(Program::isProgram).findFirst();
  }

  /**
   * Checks that a program can be started.
   *
   * @param name a path, or a name to search for in {@code PATH}
   * @param environment the environment, which holds {@code PATH}
   * @throws LaunchException with a shell's exit code: 127 if there is no such file, 126 if there is
   *     one that cannot be executed
   */
  public static void check(String name, Map<String, String> environment) {
    List<Path> found = candidates(name, environment).filter(Files::exists).toList();
    if (found.isEmpty()) {
      throw new LaunchException(127, "no such program: '" + name + "'");
    }
    if (found.stream().noneMatch(Program::isProgram)) {
      Path first = found.getFirst();
      String reason = Files.isDirectory(first) ? " is a folder" : " is not executable";
      throw new LaunchException(126, "'" + first + "'" + reason);
    }
  }

  /** Returns the files that a name may mean; a folder in {@code PATH} is none of them. */
  private static Stream<Path> candidates(String name, Map<String, String> environment) {
    if (name.indexOf(File.separatorChar) >= 0) {
      return Stream.of(Path.of(name));
    }
    return Arrays.stream(environment.getOrDefault("PATH", "").split(File.pathSeparator))
        .map(directory -> Path.of(directory.isEmpty() ? "." : directory, name))
        .filter(path -> !Files.isDirectory(path));
  }

  private static boolean isProgram(Path path) {
    return Files.isRegularFile(path) && Files.isExecutable(path);
  }
}
