package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.StringWriter;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Compiles the Java of guides that cannot run anywhere: on GPUs, in a service, with ports. */
class GuidesTest {
  private static final Pattern BLOCK = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);
  private static final Pattern PROGRAM = Pattern.compile("^public class (\\w+)", Pattern.MULTILINE);
  private static final String IMPORTS =
      """
      import dev.tutti.*;
      import dev.tutti.cuda.*;
      import dev.tutti.fake.*;
      import dev.tutti.store.tcp.*;
      import java.time.Duration;
      import java.util.*;
      """;

  @ParameterizedTest
  @CsvSource({"gpus.md, 3", "stores.md, 2", "embedding.md, 3", "interop.md, 2"})
  void theirCodeCompiles(String page, int blocks, @TempDir Path folder) throws Exception {
    List<Path> files = new ArrayList<>();
    Matcher block = BLOCK.matcher(PageSnippets.page(page));
    while (block.find()) {
      String code = block.group(1);
      Matcher program = PROGRAM.matcher(code);
      boolean isProgram = program.find();
      String name = isProgram ? program.group(1) : "Block" + files.size();
      files.add(
          Files.writeString(
              folder.resolve(name + ".java"), isProgram ? code : IMPORTS + inClass(name, code)));
    }
    assertThat(files).hasSize(blocks);
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    StringWriter output = new StringWriter();
    String classPath = ManagementFactory.getRuntimeMXBean().getClassPath();
    try (StandardJavaFileManager manager = compiler.getStandardFileManager(null, null, null)) {
      boolean compiled =
          compiler
              .getTask(
                  output,
                  manager,
                  null,
                  List.of("-proc:none", "-cp", classPath, "-d", folder.toString()),
                  null,
                  manager.getJavaFileObjectsFromPaths(files))
              .call();
      assertThat(compiled).as("%s: %s", page, output).isTrue();
    }
  }

  private static String inClass(String name, String code) {
    boolean declares = code.contains("class ");
    return "class %s {%s%s%s}"
        .formatted(
            name,
            declares ? "" : "static void run(ProcessGroup group) throws Exception {\n",
            code,
            declares ? "" : "}");
  }
}
