package dev.tutti.testing;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.ResourceLock;

/** Compiles and runs the unit test that the README shows. */
@ResourceLock("shared memory that worlds leave")
class ReadmeWorldTest {
  private static final Pattern BLOCK =
      Pattern.compile("## Unit-test your distributed code\n+```java\n(.*?)```", Pattern.DOTALL);

  @Test
  void theTestOfTheReadmePasses(@TempDir Path folder) throws Exception {
    Matcher block = BLOCK.matcher(readme());
    assertThat(block.find()).isTrue();
    Path source = Files.writeString(folder.resolve("SumTest.java"), block.group(1));
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    String classPath = ManagementFactory.getRuntimeMXBean().getClassPath();
    assertThat(
            compiler.run(
                null, null, null, "-cp", classPath, "-d", folder.toString(), source.toString()))
        .isZero();
    URL[] compiled = {folder.toUri().toURL()};
    try (URLClassLoader loader = new URLClassLoader(compiled, getClass().getClassLoader())) {
      Execution execution = Execution.of(loader.loadClass("SumTest"));
      assertThat(execution.failures()).isEmpty();
      assertThat(execution.names())
          .containsExactlyInAnyOrder(
              "everyRankGetsTheSum [size=1, backend=threaded]",
              "everyRankGetsTheSum [size=4, backend=threaded]",
              "survivorsNameTheDeadRank [size=3, backend=threaded]");
    }
  }

  private static String readme() throws IOException {
    Path folder = Path.of("").toAbsolutePath();
    while (!Files.exists(folder.resolve("README.md")) || !Files.exists(folder.resolve("tutti"))) {
      folder = folder.getParent();
      assertThat(folder).as("the folder of README.md").isNotNull();
    }
    return Files.readString(folder.resolve("README.md"));
  }
}
