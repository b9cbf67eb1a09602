package dev.tutti.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.ProcessGroup;
import dev.tutti.testing.World;
import java.io.StringWriter;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.BeforeAll;

/** Compiles and runs the PyTorch code in docs/training.md, on two ranks. */
class GuideTest {
  private static final Path GUIDE = Path.of("..", "..", "docs", "training.md");
  private static final Pattern CODE =
      Pattern.compile("^```java$(.*?)^```$", Pattern.MULTILINE | Pattern.DOTALL);
  private static final String IMPORTS =
      """
      import dev.tutti.ProcessGroup;
      import dev.tutti.ReduceOp;
      import dev.tutti.checkpoint.*;
      import dev.tutti.pytorch.*;
      import java.nio.file.Path;
      import java.util.List;
      import java.util.Map;
      import org.bytedeco.pytorch.*;
      import org.bytedeco.pytorch.Module;
      import org.bytedeco.pytorch.global.torch;
      """;

  /** Unpacks libtorch before the world's deadline starts. */
  @BeforeAll
  static void load() {
    Loader.load(torch.class);
  }

  @World(backends = "gloo", timeoutSeconds = 240)
  void theCodeRuns(ProcessGroup group) throws Exception {
    String guide = Files.readString(GUIDE);
    int start = guide.indexOf("\n## PyTorch's Java bindings\n");
    String section = guide.substring(start, guide.indexOf("\n## ", start + 1));
    List<String> pieces = CODE.matcher(section).results().map(each -> each.group(1)).toList();
    assertThat(pieces).hasSize(3);
    Path folder = Files.createTempDirectory(Path.of("target"), "guide");
    for (int i = 0; i < pieces.size(); i++) {
      String name = "Piece" + i;
      Path file = folder.resolve(name + ".java");
      Files.writeString(
          file,
          IMPORTS
              + ("public class " + name + " {")
              + "public static void run(ProcessGroup group) throws Exception {"
              + pieces.get(i)
              + "}}");
      compile(file, folder);
      try (URLClassLoader loader = new URLClassLoader(new URL[] {folder.toUri().toURL()})) {
        loader.loadClass(name).getMethod("run", ProcessGroup.class).invoke(null, group);
      }
    }
  }

  private static void compile(Path file, Path folder) throws Exception {
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    StringWriter output = new StringWriter();
    try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null)) {
      List<String> options =
          List.of(
              "-proc:none", "-cp", System.getProperty("java.class.path"), "-d", folder.toString());
      assertThat(
              compiler
                  .getTask(output, files, null, options, null, files.getJavaFileObjects(file))
                  .call())
          .as("compiles: %s", output)
          .isTrue();
    }
  }
}
