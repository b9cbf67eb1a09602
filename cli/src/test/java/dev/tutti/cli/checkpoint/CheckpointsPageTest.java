package dev.tutti.cli.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.checkpoint.StoredCheckpoint;
import dev.tutti.cli.Main;
import dev.tutti.cli.SourceTree;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs the program of docs/checkpoints.md, whose rank 1 crashes once. */
@Order(1)
class CheckpointsPageTest {
  private static final Pattern STARTS = Pattern.compile("\\] rank (\\d) starts after step (\\d+)");

  @Test
  void theJobResumesAfterTheCrash(@TempDir Path folder) throws Exception {
    String page = Files.readString(SourceTree.root().resolve("docs/checkpoints.md"));
    Matcher block = Pattern.compile("```java\n(import .*?)```", Pattern.DOTALL).matcher(page);
    assertThat(block.find()).isTrue();
    Files.writeString(folder.resolve("Train.java"), block.group(1));
    String java = ProcessHandle.current().info().command().orElseThrow();
    String classPath = ManagementFactory.getRuntimeMXBean().getClassPath();
    ProcessBuilder builder =
        new ProcessBuilder(
                java,
                "--enable-native-access=ALL-UNNAMED",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                classPath,
                Main.class.getName(),
                "run",
                "--nproc",
                "2",
                "--max-restarts",
                "1",
                "--",
                java,
                "-XX:TieredStopAtLevel=1",
                "-cp",
                classPath,
                "Train.java")
            .directory(folder.toFile())
            .redirectErrorStream(true);
    builder.environment().put("TUTTI_BACKEND", "gloo");
    Process process = builder.start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(output).isZero();
    List<String> starts =
        STARTS.matcher(output).results().map(found -> found.group(2)).sorted().toList();
    assertThat(starts).as(output).hasSize(4);
    assertThat(starts.subList(0, 2)).containsExactly("0", "0");
    assertThat(starts.get(2)).isIn("30", "40").isEqualTo(starts.get(3));
    assertThat(StoredCheckpoint.steps(folder.resolve("checkpoints")))
        .containsExactly(80L, 90L, 100L);
  }
}
