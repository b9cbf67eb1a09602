package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.ProcessGroup;
import dev.tutti.fake.ThreadedWorld;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.ToolProvider;

/**
 * The compiled Java of a page. A block that begins with an import is a program of its own; every
 * other block runs on 4 ranks with the names {@code group}, {@code rank} and {@code size}. A
 * comment after a {@code println} is what rank 1 prints.
 */
final class PageSnippets implements AutoCloseable {
  private static final Pattern BLOCK = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);
  private static final Pattern CLASS = Pattern.compile("^public class (\\w+)", Pattern.MULTILINE);
  private static final Pattern PRINT = Pattern.compile("System\\.out\\.println\\((.*)\\); // (.*)");
  private static final int SIZE = 4;
  private static final int RANK = 1;

  private final List<String> expected = new ArrayList<>();
  private final List<String> files = new ArrayList<>();
  private int snippets;
  private final URLClassLoader loader;

  /**
   * Compiles the Java of a page.
   *
   * @param page the text of the page
   * @param folder the folder for sources and classes
   */
  PageSnippets(String page, Path folder) throws IOException {
    this(page, folder, "");
  }

  /**
   * Compiles the Java of a page.
   *
   * @param page the text of the page
   * @param folder the folder for sources and classes
   * @param imports additional imports for blocks that are not programs
   */
  PageSnippets(String page, Path folder, String imports) throws IOException {
    StringBuilder program = new StringBuilder(16_384).append(imports);
    program.append("import dev.tutti.*;\nimport java.time.Duration;\nimport java.util.List;\n");
    program.append("public class Snippets {\n");
    Matcher block = BLOCK.matcher(page);
    while (block.find()) {
      if (block.group(1).startsWith("import ")) {
        Matcher name = CLASS.matcher(block.group(1));
        assertThat(name.find()).as(block.group(1)).isTrue();
        write(folder, name.group(1), block.group(1));
      } else {
        program
            .append("public static void snippet")
            .append(snippets++)
            .append("(ProcessGroup group, List<String> out) throws Exception {\n")
            .append("int rank = group.rank();\nint size = group.size();\n");
        Matcher print = PRINT.matcher(block.group(1));
        while (print.find()) {
          expected.add(print.group(2));
        }
        program.append(print.replaceAll("out.add(String.valueOf($1));")).append("}\n");
      }
    }
    write(folder, "Snippets", program.append("}\n").toString());
    List<String> arguments = new ArrayList<>(List.of("-d", folder.toString(), "-cp"));
    arguments.add(ManagementFactory.getRuntimeMXBean().getClassPath());
    arguments.addAll(files);
    assertThat(
            ToolProvider.getSystemJavaCompiler()
                .run(null, null, null, arguments.toArray(String[]::new)))
        .isZero();
    loader = new URLClassLoader(new URL[] {folder.toUri().toURL()}, getClass().getClassLoader());
  }

  private void write(Path folder, String name, String source) throws IOException {
    files.add(Files.writeString(folder.resolve(name + ".java"), source).toString());
  }

  /** Returns how many blocks the page has. */
  int blocks() {
    return snippets + files.size() - 1;
  }

  /** Returns what rank 1 prints according to the page. */
  List<String> expected() {
    return List.copyOf(expected);
  }

  /** Runs all blocks in order and returns what rank 1 prints. */
  List<String> printed(String backend) throws ClassNotFoundException {
    Class<?> program = loader.loadClass("Snippets");
    List<String> lines = Collections.synchronizedList(new ArrayList<>());
    ThreadedWorld.of(SIZE)
        .withBackend(backend)
        .withTimeout(Duration.ofMinutes(4))
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

  /** Returns the text of a page of the docs. */
  static String page(String name) throws IOException {
    return Files.readString(SourceTree.root().resolve("docs").resolve(name));
  }

  @Override
  public void close() throws IOException {
    loader.close();
  }
}
