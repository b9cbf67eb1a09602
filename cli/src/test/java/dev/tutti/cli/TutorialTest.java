package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Runs the programs of the tutorial, and of the page about ranks in an IDE. */
@Timeout(600)
@Order(1)
class TutorialTest {
  private static final Pattern PROGRAM =
      Pattern.compile("```java\n(import .*?public class (\\w+) .*?)```", Pattern.DOTALL);
  private static final String LINE = "y = 3.0055597 x + 0.9986855";

  private static final String JAVA = ProcessHandle.current().info().command().orElseThrow();

  @TempDir private Path folder;

  /** Saves the programs of a page as files. */
  private void save(String page) throws IOException {
    Matcher program = PROGRAM.matcher(page);
    while (program.find()) {
      Files.writeString(folder.resolve(program.group(2) + ".java"), program.group(1));
    }
  }

  private static List<String> java(String... arguments) {
    List<String> command =
        new ArrayList<>(List.of(JAVA, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"));
    command.add(ManagementFactory.getRuntimeMXBean().getClassPath());
    command.addAll(List.of(arguments));
    return command;
  }

  private String output(List<String> command, int exitCode) throws Exception {
    ProcessBuilder builder = new ProcessBuilder(command).directory(folder.toFile());
    builder.environment().put("TUTTI_SLOW", "0"); // the other rank may take long to start
    Process process = builder.redirectErrorStream(true).start();
    String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(text).isEqualTo(exitCode);
    return text;
  }

  private List<String> onTwoRanks(String program, String... options) {
    List<String> command = java("dev.tutti.cli.Main", "run", "--nproc", "2");
    command.addAll(List.of(options));
    command.add("--");
    command.addAll(java(program));
    return command;
  }

  @Test
  void aJobGoesOnFromItsCheckpointAfterARankHasDied() throws Exception {
    String page = PageSnippets.page("tutorial.md");
    save(page);
    String died = output(onTwoRanks("SavedLine.java"), 9);
    assertThat(died)
        .contains("[rank0] starts after step 0\n", "[rank1] starts after step 0\n")
        .contains("allReduce #250, peer rank 1, first failing rank 1")
        .contains("tutti run: the first to fail: rank 1 ended with exit code 9 after ")
        .contains("  its last lines:\n    starts after step 0\n");
    assertThat(page).contains("[rank0] " + LINE + "\n[rank1] " + LINE + "\n```\n\nThe job starts");
    assertThat(output(onTwoRanks("SavedLine.java"), 0))
        .contains("[rank0] starts after step 200\n", "[rank1] starts after step 200\n")
        .contains("[rank0] " + LINE + "\n", "[rank1] " + LINE + "\n");
  }

  @Test
  void aClassOfTheProjectStartsTheRanks() throws Exception {
    String page = PageSnippets.page("tutorial.md");
    save(page);
    save(PageSnippets.page("debugging.md"));
    assertThat(page).contains("[rank0] " + LINE + "\n[rank1] " + LINE + "\n```\n\nEach process");
    Path classes = folder.resolve("classes");
    String classPath = ManagementFactory.getRuntimeMXBean().getClassPath();
    int compiled =
        ToolProvider.getSystemJavaCompiler()
            .run(
                null,
                null,
                null,
                "-cp",
                classPath,
                "-d",
                classes.toString(),
                folder.resolve("Line.java").toString(),
                folder.resolve("RunLine.java").toString());
    assertThat(compiled).isZero();
    List<String> command = java("RunLine");
    command.set(command.indexOf(classPath), classes + ":" + classPath);
    assertThat(output(command, 0)).contains("[rank0] " + LINE + "\n", "[rank1] " + LINE + "\n");
  }
}
