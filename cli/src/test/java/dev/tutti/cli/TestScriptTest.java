package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Runs the script that runs tests in a folder of three modules, with a Maven that plays its part.
 */
class TestScriptTest {
  private static final List<String> ALWAYS =
      List.of(
          "-Dsurefire.failIfNoSpecifiedTests=false", "-Dtutti.tier=full", "-Dtest.excludedTags=");

  @TempDir private Path clone;

  private record Outcome(int status, List<String> lines) {}

  @BeforeEach
  void makeModules() throws IOException {
    Files.copy(SourceTree.root().resolve("t"), clone.resolve("t"));
    write(
        "pom.xml",
        """
        <modules>
        <module>one</module>
        <module>two</module>
        </modules>
        <modules>
        <module>extras/three</module>
        </modules>
        """);
    write("one/src/test/java/a/GroupTest.java", "");
    write("two/src/test/java/b/StoreTest.java", "");
    write("extras/three/src/test/java/c/SparseTest.java", "");
    // Prints its arguments, and writes a report of GroupTest.
    Path maven =
        write(
            "path/mvn",
            """
            #!/bin/sh
            printf '%s\\n' "$@"
            mkdir -p one/target/surefire-reports
            echo "Tests run: 5, Failures: 0, Errors: 0, Skipped: 2, Time elapsed: 1 s" > \
            one/target/surefire-reports/a.GroupTest.txt
            """);
    assertThat(maven.toFile().setExecutable(true)).isTrue();
  }

  private Path write(String name, String text) throws IOException {
    Path file = clone.resolve(name);
    Files.createDirectories(file.getParent());
    return Files.writeString(file, text);
  }

  private Outcome run(String... arguments) throws Exception {
    List<String> command = new ArrayList<>(List.of("bash", clone.resolve("t").toString()));
    command.addAll(List.of(arguments));
    Path out = clone.resolve("out");
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(out.toFile());
    builder.environment().merge("PATH", "", (old, none) -> clone.resolve("path") + ":" + old);
    int status = builder.start().waitFor();
    return new Outcome(status, Files.readAllLines(out));
  }

  private static Outcome ran(int status, List<String> maven, List<String> options, String last) {
    List<String> lines = new ArrayList<>(List.of("test"));
    lines.addAll(maven);
    lines.addAll(ALWAYS);
    lines.addAll(options);
    lines.add(last);
    return new Outcome(status, lines);
  }

  @Test
  void runsAMethodInTheModuleOfItsClassAndCountsTheTests() throws Exception {
    List<String> maven = List.of("-pl", "one", "-am", "-Dtest=GroupTest#close");
    assertThat(run("GroupTest#close", "-o"))
        .isEqualTo(
            ran(0, maven, List.of("-o"), "GroupTest#close: 5 tests, of which 2 were skipped"));
  }

  @Test
  void findsAClassByItsPackage() throws Exception {
    List<String> maven = List.of("-pl", "one", "-am", "-Dtest=a.GroupTest");
    assertThat(run("a.GroupTest"))
        .isEqualTo(ran(0, maven, List.of(), "a.GroupTest: 5 tests, of which 2 were skipped"));
  }

  @Test
  void failsIfNoTestRan() throws Exception {
    write("two/target/surefire-reports/b.StoreTest.txt", "Tests run: 1, Failures: 0\n");
    List<String> maven = List.of("-pl", "two", "-am", "-Dtest=StoreTest#none");
    assertThat(run("StoreTest#none"))
        .isEqualTo(ran(1, maven, List.of(), "no test ran: StoreTest#none"));
  }

  @Test
  void buildsAModuleThatOnlyTheFullBuildHas() throws Exception {
    List<String> maven = List.of("-pl", "extras/three", "-am", "-Dtest=SparseTest");
    assertThat(run("SparseTest"))
        .isEqualTo(ran(1, maven, List.of("-Pfull"), "no test ran: SparseTest"));
  }

  @Test
  void namesSimilarClasses() throws Exception {
    assertThat(run("GropTest"))
        .isEqualTo(new Outcome(2, List.of("no test class is named GropTest; similar: GroupTest")));
    assertThat(run("store#send"))
        .isEqualTo(new Outcome(2, List.of("no test class is named store; similar: StoreTest")));
    assertThat(run("Unrelated"))
        .isEqualTo(new Outcome(2, List.of("no test class is named Unrelated")));
  }

  @Test
  void describesItselfWithoutATest() throws Exception {
    Outcome outcome = run("-o");
    assertThat(outcome.status()).isEqualTo(2);
    assertThat(outcome.lines()).contains("  ./t CLASS[#METHOD]... [OPTION...]");
  }
}
