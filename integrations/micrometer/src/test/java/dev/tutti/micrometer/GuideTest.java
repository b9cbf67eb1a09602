package dev.tutti.micrometer;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Compiles the program of docs/micrometer.md; {@link TuttiMetricsTest} runs similar code. */
class GuideTest {
  private static final Pattern CODE = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);

  @Test
  void theProgramCompiles(@TempDir Path folder) throws Exception {
    Matcher code = CODE.matcher(Files.readString(Path.of("..", "..", "docs", "micrometer.md")));
    assertThat(code.find()).isTrue();
    Path file = Files.writeString(folder.resolve("CountedRank.java"), code.group(1));
    assertThat(code.find()).as("more programs").isFalse();
    ByteArrayOutputStream errors = new ByteArrayOutputStream();
    int result =
        ToolProvider.getSystemJavaCompiler()
            .run(
                null,
                null,
                errors,
                "-proc:none",
                "-d",
                folder.toString(),
                "-cp",
                classPath(),
                file.toString());
    assertThat(result).as(errors.toString(StandardCharsets.UTF_8)).isZero();
  }

  private static String classPath() {
    return System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
  }
}
