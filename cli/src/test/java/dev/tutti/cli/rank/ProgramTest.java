package dev.tutti.cli.rank;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.cli.process.LaunchException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProgramTest {
  @Test
  void findsAProgramBehindFilesOfItsNameThatAreNone(@TempDir Path root) throws IOException {
    Path file = file(root.resolve("a/tool"), false);
    Files.createDirectories(root.resolve("b/tool"));
    Path program = file(root.resolve("c/tool"), true);
    Map<String, String> path = path(file, root.resolve("b/tool"), program);
    assertThat(Program.find("tool", path)).contains(program);
    Program.check("tool", path);
    assertThat(Program.find(file.toString(), path)).isEmpty();
  }

  @Test
  void namesAFileInThePathThatIsNotExecutable(@TempDir Path root) throws IOException {
    Path file = file(root.resolve("a/tool"), false);
    Map<String, String> path = path(root.resolve("none/tool"), file);
    assertRefused("tool", path, 126, "'" + file + "' is not executable");
  }

  @Test
  void takesNoFolderInThePathForAProgram(@TempDir Path root) throws IOException {
    Map<String, String> path = path(Files.createDirectories(root.resolve("a/tool")));
    assertRefused("tool", path, 127, "no such program: 'tool'");
    assertRefused("", path, 127, "no such program: ''");
  }

  private static Path file(Path file, boolean executable) throws IOException {
    Files.createDirectories(file.getParent());
    assertThat(Files.createFile(file).toFile().setExecutable(executable)).isTrue();
    return file;
  }

  /** Returns an environment whose path has the folders of the given files. */
  private static Map<String, String> path(Path... files) {
    return Map.of(
        "PATH",
        Stream.of(files).map(file -> file.getParent().toString()).collect(Collectors.joining(":")));
  }

  private static void assertRefused(
      String name, Map<String, String> environment, int code, String message) {
    assertThatThrownBy(() -> Program.check(name, environment))
        .isInstanceOfSatisfying(
            LaunchException.class, e -> assertThat(e.exitCode()).isEqualTo(code))
        .hasMessage(message);
  }
}
