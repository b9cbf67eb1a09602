package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.List;
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
    Path original = Path.of("").toAbsolutePath();
    while (!Files.exists(original.resolve("tutti"))) {
      original = original.getParent();
      assertThat(original).as("the folder of the script").isNotNull();
    }
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
    ProcessBuilder builder =
        new ProcessBuilder("bash", clone.resolve("tutti").toString(), "run")
            .directory(clone.toFile())
            .redirectErrorStream(true)
            .redirectOutput(out.toFile());
    builder.environment().put("JAVA_HOME", "/other/jdk");
    Process process = builder.start();
    try {
      assertThat(process.waitFor(4, TimeUnit.MINUTES)).isTrue();
    } finally {
      process.destroyForcibly();
    }
    assertThat(Files.readString(out))
        .startsWith("home=" + jdk + "\njava=" + jdk.resolve("bin/java") + "\n");
    assertThat(process.exitValue()).isZero();
  }
}
