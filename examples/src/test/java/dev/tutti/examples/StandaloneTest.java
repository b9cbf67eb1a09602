package dev.tutti.examples;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.gloo.GlooProvider;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Keeps the standalone project, which the build omits, in sync: its program and its version. */
class StandaloneTest {
  private static final Path PROJECT = Path.of("standalone").toAbsolutePath();

  @TempDir Path folder;

  @Test
  void theProgramPrintsTheMeanOnRankZero() throws Exception {
    String program = PROJECT.resolve("src/main/java/com/example/Mean.java").toString();
    assertThat(Processes.run(4, program, Processes.classPath(GlooProvider.class), folder))
        .containsExactly("the mean of 8 numbers is 2.0");
  }

  @Test
  void theVersionIsThatOfTheBuild() throws Exception {
    String version = find(PROJECT.resolve("pom.xml"), "<tutti.version>(.*)</tutti.version>");
    assertThat(version)
        .isEqualTo(find(PROJECT.resolve("../../bom/pom.xml"), "<version>(.*)</version>"));
  }

  private static String find(Path file, String pattern) throws Exception {
    Matcher matcher = Pattern.compile(pattern).matcher(Files.readString(file));
    assertThat(matcher.find()).as("%s in %s", pattern, file).isTrue();
    return matcher.group(1);
  }
}
