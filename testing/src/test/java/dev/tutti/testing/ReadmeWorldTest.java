package dev.tutti.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.testkit.Execution;
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
import org.junit.jupiter.api.parallel.Isolated;

/** Compiles the unit tests shown in the README and its guide, and runs them in simulated worlds. */
@Isolated("threads of other tests in shared locks would bring in real time")
class ReadmeWorldTest {
  private static final Pattern CODE = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);
  private static final int SEEDS = 10;
  private static final String IMPORTS =
      """
      import static org.assertj.core.api.Assertions.*;
      import dev.tutti.*;
      import dev.tutti.fake.*;
      import dev.tutti.testing.*;
      import java.time.Duration;
      import java.util.*;
      import org.junit.jupiter.api.parallel.Isolated;
      """;
  private static final Pattern BLOCK =
      Pattern.compile("## Unit-test your distributed code\n+```java\n(.*?)```", Pattern.DOTALL);

  @Test
  void theTestOfTheReadmePasses(@TempDir Path folder) throws Exception {
    Matcher block = BLOCK.matcher(page("README.md"));
    assertThat(block.find()).isTrue();
    Execution execution = run(folder, "SumTest", block.group(1));
    assertThat(execution.names())
        .hasSize(3 * 2 * SEEDS)
        .contains(
            "everyRankGetsTheSum [size=1, seed=0]",
            "everyRankGetsTheSum [size=4, seed=9]",
            "survivorsNameTheDeadRank [size=3, seed=9, again]");
  }

  @Test
  void theTestsOfTheGuidePass(@TempDir Path folder) throws Exception {
    Matcher block = CODE.matcher(page("docs/unit-tests.md"));
    assertThat(block.find()).isTrue();
    assertThat(run(folder, "PartsTest", IMPORTS + block.group(1)).names()).hasSize(3 * 2 * SEEDS);
    assertThat(block.find()).isTrue();
    assertThat(run(folder, "CounterTest", IMPORTS + block.group(1)).names()).hasSize(2 * 100);
    assertThat(block.find()).isTrue();
    assertThat(run(folder, "PartitionTest", IMPORTS + block.group(1)).names()).hasSize(2 * SEEDS);
    assertThat(block.find()).isTrue();
    // This module has no other backend.
    String code =
        block
            .group(1)
            .replace("\"gloo\"", "\"threaded\"")
            .replace("Duration.ofSeconds(10)", "Duration.ofMinutes(3)");
    assertThat(
            run(
                    folder,
                    "Bodies",
                    IMPORTS
                        + "class Bodies { @org.junit.jupiter.api.Test void run() {"
                        + code
                        + "} }")
                .names())
        .hasSize(1);
    assertThat(block.find()).isFalse();
  }

  private Execution run(Path folder, String name, String code) throws Exception {
    // Simulated ranks keep the time-outs that the page shows, however busy the machine is.
    String simulated = code.replaceAll("@World\\((?!.*seeds)", "@World(seeds = " + SEEDS + ", ");
    Path source = Files.writeString(folder.resolve(name + ".java"), simulated);
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    String classPath = ManagementFactory.getRuntimeMXBean().getClassPath();
    assertThat(
            compiler.run(
                null, null, null, "-cp", classPath, "-d", folder.toString(), source.toString()))
        .isZero();
    URL[] compiled = {folder.toUri().toURL()};
    try (URLClassLoader loader = new URLClassLoader(compiled, getClass().getClassLoader())) {
      Execution execution = Execution.of(loader.loadClass(name));
      assertThat(execution.failures()).isEmpty();
      return execution;
    }
  }

  private static String page(String name) throws IOException {
    Path folder = Path.of("").toAbsolutePath();
    while (!Files.exists(folder.resolve("README.md")) || !Files.exists(folder.resolve("tutti"))) {
      folder = folder.getParent();
      assertThat(folder).as("the folder of README.md").isNotNull();
    }
    return Files.readString(folder.resolve(name));
  }
}
