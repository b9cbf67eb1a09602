package dev.tutti.cuda.nccl;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cuda.ipc.IpcProcess;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests that NCCL cannot keep a process from ending whose groups are open. */
class NcclExitTest {
  @TempDir Path folder;

  @ParameterizedTest
  @CsvSource({"connecting, 7", "open, 7", "waiting, 7", "closed, 9"})
  void exitHandlersRunUnlessGroupsAreOpen(String end, int status) throws Exception {
    Path errors = folder.resolve("errors");
    Process child = IpcProcess.jvm(NcclExitChild.class, end).redirectError(errors.toFile()).start();
    try {
      String begun = new String(child.getInputStream().readAllBytes(), UTF_8).strip();
      assertThat(child.waitFor(2, TimeUnit.MINUTES)).as("whether it ends").isTrue();
      String said = Files.readString(errors);
      assertThat(child.exitValue()).as(said).isEqualTo(status);
      assertThat(said).doesNotContain("Exception", "Error");
      if (end.equals("waiting")) {
        assertThat(System.currentTimeMillis() - Long.parseLong(begun)).isGreaterThan(2900);
      }
    } finally {
      child.destroyForcibly();
    }
  }
}
