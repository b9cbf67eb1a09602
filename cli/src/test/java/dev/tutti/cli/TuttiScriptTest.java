package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.shared.Until;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Runs a clone's script in a folder that looks built, with a JDK that prints its arguments. */
@Timeout(300)
class TuttiScriptTest {
  @TempDir private Path clone;
  private Path jdk;

  @BeforeEach
  void lookBuilt() throws IOException {
    Path original = SourceTree.root();
    Files.copy(original.resolve("tutti"), clone.resolve("tutti"));
    jdk = Files.createDirectories(clone.resolve("jdk"));
    executable(
        jdk.resolve("bin/java"), "#!/bin/sh\necho home=$JAVA_HOME\necho java=$(command -v java)\n");
    executable(jdk.resolve("bin/javac"), "#!/bin/sh\n");
    Files.writeString(jdk.resolve("release"), "JAVA_VERSION=\"25.0.9\"\n");
    Path target = Files.createDirectories(clone.resolve("dist/target"));
    for (String file : List.of("bin/tutti", "libexec/find-jdk")) {
      executable(
          target.resolve("tutti").resolve(file),
          Files.readString(original.resolve("dist/src/main/dist").resolve(file)));
    }
    Files.createDirectory(target.resolve("tutti/lib"));
    Files.writeString(target.resolve("jdk"), jdk + "\n");
    Path pom = Files.createFile(clone.resolve("pom.xml"));
    Path stamp = Files.createFile(target.resolve("stamp"));
    Files.setLastModifiedTime(pom, FileTime.fromMillis(1_000_000));
    Files.setLastModifiedTime(stamp, FileTime.fromMillis(2_000_000));
  }

  private static void executable(Path file, String text) throws IOException {
    Files.createDirectories(file.getParent());
    Files.writeString(file, text);
    assertThat(file.toFile().setExecutable(true)).isTrue();
  }

  @Test
  void givesWhatItStartsItsOwnJdk() throws Exception {
    Path out = clone.resolve("out");
    Process process = start(out, Map.of("JAVA_HOME", "/other/jdk"));
    try {
      assertThat(process.waitFor(4, TimeUnit.MINUTES)).isTrue();
    } finally {
      process.destroyForcibly();
    }
    assertThat(Files.readString(out))
        .startsWith("home=" + jdk + "\njava=" + jdk.resolve("bin/java") + "\n");
    assertThat(process.exitValue()).isZero();
  }

  @Test
  void saysThatAnotherBuildsAndEndsTheBuildThatItStarted() throws Exception {
    Files.delete(clone.resolve("dist/target/stamp"));
    for (String file : List.of(".ci/jdk25", "dist/src/main/dist/libexec/find-jdk")) {
      executable(clone.resolve(file), Files.readString(SourceTree.root().resolve(file)));
    }
    // A Maven with a compiler: both write their process ids.
    executable(
        clone.resolve("path/mvn"),
        """
        #!/bin/sh
        sleep 1000 &
        echo $! >> $PIDS
        echo $$ >> $PIDS
        wait
        """);
    Path firstBuild = clone.resolve("first-pids");
    Path secondBuild = clone.resolve("second-pids");
    Process first = start(clone.resolve("first"), building(firstBuild));
    Process second = null;
    try {
      List<ProcessHandle> maven = mavenOf(firstBuild);
      second = start(clone.resolve("second"), building(secondBuild));
      awaitLine(clone.resolve("second"), "another tutti is building this clone: waiting for it");
      assertThat(secondBuild).doesNotExist();
      first.destroy();
      assertThat(first.waitFor(4, TimeUnit.MINUTES)).isTrue();
      assertThat(first.exitValue()).isEqualTo(128 + 15);
      awaitEnd(maven);
      maven = mavenOf(secondBuild);
      signal(second, "INT");
      assertThat(second.waitFor(4, TimeUnit.MINUTES)).isTrue();
      assertThat(second.exitValue()).isEqualTo(128 + 2);
      awaitEnd(maven);
    } finally {
      first.destroy();
      if (second != null) {
        second.destroy();
      }
    }
  }

  private Map<String, String> building(Path pids) {
    return Map.of(
        "JAVA_HOME",
        jdk.toString(),
        "PATH",
        clone.resolve("path") + ":" + System.getenv("PATH"),
        "PIDS",
        pids.toString());
  }

  private Process start(Path out, Map<String, String> environment) throws IOException {
    ProcessBuilder builder =
        new ProcessBuilder(
                "env", "--default-signal=INT", "bash", clone.resolve("tutti").toString(), "run")
            .directory(clone.toFile())
            .redirectErrorStream(true)
            .redirectOutput(out.toFile());
    builder.environment().putAll(environment);
    return builder.start();
  }

  private static void signal(Process process, String name) throws Exception {
    Process kill = new ProcessBuilder("kill", "-" + name, "" + process.pid()).start();
    assertThat(kill.waitFor()).isZero();
  }

  /** Waits until a build has written two process ids. */
  private static List<ProcessHandle> mavenOf(Path pids) throws Exception {
    Until.holds(() -> Files.exists(pids) && Files.readAllLines(pids).size() == 2);
    return Files.readAllLines(pids).stream()
        .map(pid -> ProcessHandle.of(Long.parseLong(pid)).orElseThrow())
        .toList();
  }

  private static void awaitLine(Path file, String line) throws Exception {
    Until.holds(() -> Files.readAllLines(file).contains(line));
  }

  private static void awaitEnd(List<ProcessHandle> processes) throws Exception {
    Until.holds(() -> processes.stream().noneMatch(ProcessHandle::isAlive));
  }
}
