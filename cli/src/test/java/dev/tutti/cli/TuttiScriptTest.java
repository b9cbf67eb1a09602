package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Runs the script of a clone in a folder that looks built, with a JDK that prints what it gets. */
@Timeout(60)
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
    Path java = Files.createDirectories(jdk.resolve("bin")).resolve("java");
    Files.writeString(java, "#!/bin/sh\necho home=$JAVA_HOME\necho java=$(command -v java)\n");
    assertThat(java.toFile().setExecutable(true)).isTrue();
    Path dist = Files.createDirectories(clone.resolve("cli/target/dist"));
    Files.createDirectory(dist.resolve("lib"));
    Files.writeString(dist.resolve("jdk"), jdk + "\n");
    Path pom = Files.createFile(clone.resolve("pom.xml"));
    Path stamp = Files.createFile(dist.resolve("stamp"));
    Files.setLastModifiedTime(pom, FileTime.fromMillis(1_000_000));
    Files.setLastModifiedTime(stamp, FileTime.fromMillis(2_000_000));
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
      assertThat(process.waitFor(30, TimeUnit.SECONDS)).isTrue();
    } finally {
      process.destroyForcibly();
    }
    assertThat(Files.readString(out))
        .startsWith("home=" + jdk + "\njava=" + jdk.resolve("bin/java") + "\n");
    assertThat(process.exitValue()).isZero();
  }
}
