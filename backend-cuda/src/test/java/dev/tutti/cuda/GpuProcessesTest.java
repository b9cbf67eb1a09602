package dev.tutti.cuda;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** Runs the contract with ranks as processes, which share a GPU if there is only one. */
@ExtendWith(Gpu.class)
class GpuProcessesTest {
  private static final Pattern PASSED = Pattern.compile("(\\d+) passed, \\d+ skipped, 0 failed");

  @Test
  @Timeout(300)
  void keepTheContract(@TempDir Path directory) throws Exception {
    keepTheContract(directory, false);
  }

  @Test
  @Timeout(300)
  void keepTheContractOnNccl(@TempDir Path directory) throws Exception {
    assumeTrue(Cuda.get().deviceCount() > 1, "NCCL needs a GPU for each rank");
    keepTheContract(directory, true);
  }

  private static void keepTheContract(Path directory, boolean nccl) throws Exception {
    List<Process> ranks = new ArrayList<>();
    try {
      for (int r = 0; r < GpuRankContract.RANKS; r++) {
        ranks.add(
            new ProcessBuilder(
                    ProcessHandle.current().info().command().orElseThrow(),
                    "--enable-native-access=ALL-UNNAMED",
                    "-D" + GpuRankContract.RANK + "=" + r,
                    "-D" + GpuRankContract.DIRECTORY + "=" + directory,
                    "-D" + GpuRankContract.NCCL + "=" + nccl,
                    "-cp",
                    System.getProperty("java.class.path"),
                    RunTests.class.getName(),
                    GpuRankContract.class.getName())
                .redirectErrorStream(true)
                .redirectOutput(directory.resolve("out" + r).toFile())
                .start());
      }
      for (int r = 0; r < GpuRankContract.RANKS; r++) {
        boolean ended = ranks.get(r).waitFor(280, TimeUnit.SECONDS);
        String text = Files.readString(directory.resolve("out" + r), UTF_8);
        assertThat(ended).as("whether rank " + r + " ends: " + text).isTrue();
        Matcher passed = PASSED.matcher(text);
        assertThat(passed.find()).as("whether rank " + r + " passes: " + text).isTrue();
        assertThat(Integer.parseInt(passed.group(1))).isGreaterThan(50);
        System.out.println("rank " + r + ": " + passed.group());
      }
    } finally {
      ranks.forEach(Process::destroyForcibly);
    }
  }
}
