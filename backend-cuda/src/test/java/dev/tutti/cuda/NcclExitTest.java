package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests that NCCL cannot keep a process from ending whose groups are open. */
class NcclExitTest {
  @ParameterizedTest
  @CsvSource({"open, 7", "waiting, 7", "closed, 9"})
  void exitHandlersRunUnlessGroupsAreOpen(String end, int status) throws Exception {
    Process child =
        new ProcessBuilder(
                ProcessHandle.current().info().command().orElseThrow(),
                "--enable-native-access=ALL-UNNAMED",
                "-XX:TieredStopAtLevel=1",
                "-XX:-UsePerfData",
                "-XX:+UseSerialGC",
                "-Xmx256m",
                "-cp",
                System.getProperty("java.class.path"),
                NcclExitChild.class.getName(),
                end)
            .inheritIO()
            .start();
    try {
      assertThat(child.waitFor(2, TimeUnit.MINUTES)).as("whether it ends").isTrue();
      assertThat(child.exitValue()).isEqualTo(status);
    } finally {
      child.destroyForcibly();
    }
  }
}
