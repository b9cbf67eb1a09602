package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.condition.OS.LINUX;

import dev.tutti.cli.run.CommandProcess;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;

/** Counts the ranks that report that native access would make them faster. */
@Timeout(600)
@EnabledOnOs(value = LINUX, disabledReason = "only Linux reads the memory of other processes")
class NativeAccessNoteTest {
  private static List<String> notes(int elements, String... javaOptions) throws Exception {
    List<String> command = new ArrayList<>();
    command.addAll(List.of("run", "--nproc", "3", "--"));
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of(javaOptions));
    command.addAll(List.of("-cp", System.getProperty("java.class.path")));
    command.addAll(List.of(LargeTensorProgram.class.getName(), Integer.toString(elements)));
    try (CommandProcess job = CommandProcess.start(command.toArray(String[]::new))) {
      assertThat(job.exitCode()).as("%s", job.lines()).isZero();
      return job.lines().stream().filter(line -> line.contains("--enable-native-access")).toList();
    }
  }

  @Test
  void rankZeroSaysSoOnceWhereLargeTensorsWouldBeFaster() throws Exception {
    assertThat(notes(100_000))
        .singleElement()
        .asString()
        .startsWith("[rank0] ")
        .contains("start java with --enable-native-access=ALL-UNNAMED");
  }

  @Tag("full")
  @Test
  void nobodySaysSoWithNativeAccessOrSmallTensors() throws Exception {
    assertThat(notes(100_000, "--enable-native-access=ALL-UNNAMED")).isEmpty();
    assertThat(notes(100)).isEmpty();
  }
}
