package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Batch;
import dev.tutti.ProcessGroup;
import dev.tutti.fake.ThreadedWorld;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Compiles and runs the snippets of the page of operations, and looks for what it leaves out. */
@Timeout(300)
class OperationsPageTest {
  private static final Pattern SNIPPET = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);
  private static final Pattern PRINT = Pattern.compile("System\\.out\\.println\\((.*)\\); // (.*)");
  private static final int RANK = 1;

  private final List<String> expected = new ArrayList<>();
  private int snippets;

  @Test
  void theSnippetsPrintWhatTheySay(@TempDir Path folder) throws Exception {
    Path source = Files.writeString(folder.resolve("Snippets.java"), program(page()));
    String classPath = ManagementFactory.getRuntimeMXBean().getClassPath();
    assertThat(
            ToolProvider.getSystemJavaCompiler()
                .run(
                    null, null, null, "-cp", classPath, "-d", folder.toString(), source.toString()))
        .isZero();
    assertThat(expected).hasSizeGreaterThan(40);
    URL[] compiled = {folder.toUri().toURL()};
    try (URLClassLoader loader = new URLClassLoader(compiled, getClass().getClassLoader())) {
      for (String backend : List.of("threaded", "gloo")) {
        assertThat(printed(loader.loadClass("Snippets"), backend))
            .as(backend)
            .containsExactlyElementsOf(expected);
      }
    }
  }

  @Test
  void everyOperationIsShown() throws IOException {
    String page = page();
    assertThat(
            Stream.of(ProcessGroup.class, Batch.class)
                .flatMap(type -> Stream.of(type.getMethods()))
                .map(Method::getName)
                .distinct()
                .filter(name -> !page.contains(name)))
        .isEmpty();
  }

  private List<String> printed(Class<?> program, String backend) {
    List<String> lines = Collections.synchronizedList(new ArrayList<>());
    ThreadedWorld.of(4)
        .withBackend(backend)
        .run(
            group -> {
              for (int i = 0; i < snippets; i++) {
                List<String> out = group.rank() == RANK ? lines : new ArrayList<>();
                try {
                  program
                      .getMethod("snippet" + i, ProcessGroup.class, List.class)
                      .invoke(null, group, out);
                } catch (InvocationTargetException e) {
                  throw new AssertionError("snippet " + i + " on " + backend, e.getCause());
                }
              }
            });
    return lines;
  }

  private String program(String page) {
    StringBuilder program = new StringBuilder(16_384);
    program.append("import dev.tutti.*;\nimport java.time.Duration;\nimport java.util.List;\n");
    program.append("public class Snippets {\n");
    Matcher snippet = SNIPPET.matcher(page);
    while (snippet.find()) {
      program
          .append("public static void snippet")
          .append(snippets++)
          .append("(ProcessGroup group, List<String> out) throws Exception {\n")
          .append("int rank = group.rank();\nint size = group.size();\n");
      Matcher print = PRINT.matcher(snippet.group(1));
      while (print.find()) {
        expected.add(print.group(2));
      }
      program.append(print.replaceAll("out.add(String.valueOf($1));")).append("}\n");
    }
    return program.append("}\n").toString();
  }

  private static String page() throws IOException {
    Path folder = Path.of("").toAbsolutePath();
    while (!Files.exists(folder.resolve("docs/operations.md"))) {
      folder = folder.getParent();
      assertThat(folder).as("the folder of docs/operations.md").isNotNull();
    }
    return Files.readString(folder.resolve("docs/operations.md"));
  }
}
