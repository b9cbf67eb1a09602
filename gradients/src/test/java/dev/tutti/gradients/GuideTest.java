package dev.tutti.gradients;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.ProcessGroup;
import java.io.IOException;
import java.io.StringWriter;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/**
 * Compiles and runs the code of docs/gradients.md, and the code of docs/training.md that needs no
 * engine.
 */
class GuideTest {
  private static final Path GUIDE = Path.of("..", "docs", "gradients.md");
  private static final Path TRAINING = Path.of("..", "docs", "training.md");
  private static final Pattern CODE =
      Pattern.compile("^```java$(.*?)^```$", Pattern.MULTILINE | Pattern.DOTALL);
  private static final String IMPORTS =
      """
      import static dev.tutti.DType.*;
      import dev.tutti.*;
      import dev.tutti.gradients.*;
      import dev.tutti.gradients.hook.*;
      import dev.tutti.gradients.optimizer.*;
      import java.util.*;
      """;

  @TempDir Path folder;

  @TestFactory
  Stream<DynamicTest> everyPieceOfCodeRuns() throws Exception {
    String training = Files.readString(TRAINING);
    String code = Files.readString(GUIDE) + training.substring(0, training.indexOf("\n## DJL\n"));
    List<String> pieces = CODE.matcher(code).results().map(found -> found.group(1)).toList();
    assertThat(pieces).hasSizeGreaterThanOrEqualTo(5);
    List<Path> files = new ArrayList<>();
    for (String piece : pieces) {
      files.add(write(piece, files.size() + 1));
    }
    compile(files);
    return IntStream.rangeClosed(1, pieces.size())
        .mapToObj(number -> DynamicTest.dynamicTest("piece " + number, () -> run(number)));
  }

  private Path write(String code, int number) throws IOException {
    return Files.writeString(
        folder.resolve("Piece" + number + ".java"),
        IMPORTS
            + "public class Piece"
            + number
            + " { public static void run(ProcessGroup group) throws Exception {"
            + code
            + "}}");
  }

  private void run(int number) throws Exception {
    try (URLClassLoader loader = new URLClassLoader(new URL[] {folder.toUri().toURL()})) {
      Method method = loader.loadClass("Piece" + number).getMethod("run", ProcessGroup.class);
      Worlds.SHARED_MEMORY.run(2, group -> method.invoke(null, group));
    }
  }

  private void compile(List<Path> sources) throws IOException {
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    StringWriter output = new StringWriter();
    try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null)) {
      List<String> options =
          List.of(
              "-proc:none", "-cp", System.getProperty("java.class.path"), "-d", folder.toString());
      boolean compiled =
          compiler
              .getTask(
                  output, files, null, options, null, files.getJavaFileObjectsFromPaths(sources))
              .call();
      assertThat(compiled).as("compiles: %s", output).isTrue();
    }
  }
}
