package dev.tutti.djl;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.engine.Engine;
import dev.tutti.ProcessGroup;
import dev.tutti.checkpoint.StoredCheckpoint;
import dev.tutti.testing.World;
import java.io.StringWriter;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;

/** Compiles and runs the DJL code in docs/training.md, on two ranks. */
@Timeout(600)
class GuideTest {
  private static final Path GUIDE = Path.of("..", "..", "docs", "training.md");
  private static final Pattern CODE =
      Pattern.compile(
          "^## (?:DJL|Checkpoints)$.*?^```java$(.*?)^```$", Pattern.MULTILINE | Pattern.DOTALL);
  private static final String IMPORTS =
      """
      import ai.djl.*;
      import ai.djl.ndarray.*;
      import ai.djl.ndarray.types.*;
      import ai.djl.nn.*;
      import ai.djl.nn.core.*;
      import ai.djl.training.*;
      import ai.djl.training.dataset.*;
      import ai.djl.training.evaluator.*;
      import ai.djl.training.listener.*;
      import ai.djl.training.loss.*;
      import ai.djl.training.optimizer.*;
      import ai.djl.training.tracker.*;
      import dev.tutti.ProcessGroup;
      import dev.tutti.Tensor;
      import dev.tutti.checkpoint.*;
      import dev.tutti.djl.*;
      import java.nio.file.*;
      import java.util.List;
      import java.util.Map;
      """;

  /** Unpacks libtorch before the world's deadline starts. */
  @BeforeAll
  static void load() {
    Engine.getInstance();
  }

  @World(backends = "gloo", processes = true, timeoutSeconds = 500)
  void theCodeRuns(ProcessGroup group) throws Exception {
    List<String> pieces =
        CODE.matcher(Files.readString(GUIDE)).results().map(found -> found.group(1)).toList();
    assertThat(pieces).hasSize(2);
    run(pieces.get(0), group);
    resume(pieces.get(1), group);
  }

  /** Trains one epoch, and then a second one from the checkpoint of the first. */
  private static void resume(String piece, ProcessGroup group) throws Exception {
    long launcher = ProcessHandle.current().parent().orElseThrow().pid(); // the same on all ranks
    Path folder = Path.of("target", "checkpoints-" + launcher);
    String there = "Path.of(\"" + folder + "\")";
    assertThat(piece).contains("Path.of(\"checkpoints\")", "epoch <= 2");
    String whole = piece.replace("Path.of(\"checkpoints\")", there);
    run(whole.replace("epoch <= 2", "epoch <= 1"), group);
    group.barrier();
    assertThat(StoredCheckpoint.steps(folder)).containsExactly(1L);
    assertThat(StoredCheckpoint.open(folder, 1).counters().get("sampler"))
        .isEqualTo(Map.of("epoch", 1L, "seed", 7L));
    group.barrier();
    // A second run would save step 1 again, and be refused, if it had not loaded.
    run(whole, group);
    group.barrier();
    assertThat(StoredCheckpoint.steps(folder)).containsExactly(1L, 2L);
    assertThat(StoredCheckpoint.open(folder, 2).counters().get("sampler").get("epoch"))
        .isEqualTo(2L);
    assertThat(StoredCheckpoint.open(folder, 2).tensors()).hasSize(4);
  }

  private static void run(String piece, ProcessGroup group) throws Exception {
    Path folder = Files.createTempDirectory(Path.of("target"), "guide");
    Path file = folder.resolve("Piece.java");
    Files.writeString(
        file,
        IMPORTS
            + "public class Piece { public static void run(ProcessGroup group) throws Exception {"
            + piece
            + "}}");
    compile(file, folder);
    try (URLClassLoader loader = new URLClassLoader(new URL[] {folder.toUri().toURL()})) {
      loader.loadClass("Piece").getMethod("run", ProcessGroup.class).invoke(null, group);
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
