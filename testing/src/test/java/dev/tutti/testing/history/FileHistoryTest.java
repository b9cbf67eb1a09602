package dev.tutti.testing.history;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.store.file.FileStore;
import dev.tutti.testing.TestTier;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests what clients of a store file observe when other writers are killed. */
class FileHistoryTest {
  private static final int FAULTS = TestTier.isFast() ? 2 : 20;
  private static final String COUNTER = "other";
  private static final int LARGE = 20_000;

  @TempDir private Path directory;

  /** Writes to the same file for ever. */
  static final class Writer {
    private Writer() {}

    public static void main(String[] args) {
      try (FileStore store = new FileStore(Path.of(args[0]), 0)) {
        store.set("large", new byte[LARGE]);
        System.out.println("READY");
        while (true) {
          store.set("large", new byte[LARGE]);
          store.add(COUNTER, 1);
        }
      }
    }
  }

  @Test
  void aKilledWriterLeavesAFileThatIsRight() throws Exception {
    Path file = directory.resolve("store");
    try (HistoryRun run = new HistoryRun(1, 3, true, () -> new FileStore(file, 0));
        FileStore store = new FileStore(file, 0)) {
      for (int i = 0; i < FAULTS; i++) {
        Process writer = start(file);
        try {
          assertThat(writer.inputReader().readLine()).isEqualTo("READY");
          long before = store.add(COUNTER, 0);
          run.awaitAnswers(100);
          assertThat(store.add(COUNTER, 0)).isGreaterThanOrEqualTo(before);
        } finally {
          writer.destroyForcibly();
        }
        assertThat(writer.waitFor(100, TimeUnit.SECONDS)).isTrue();
        run.awaitAnswers(100);
      }
      assertThat(run.end()).isEmpty();
      assertThat(store.get("large")).isEqualTo(new byte[LARGE]);
    }
  }

  private static Process start(Path file) throws Exception {
    return new ProcessBuilder(
            ProcessHandle.current().info().command().orElseThrow(),
            "--enable-native-access=ALL-UNNAMED",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            ManagementFactory.getRuntimeMXBean().getClassPath(),
            Writer.class.getName(),
            file.toString())
        .redirectError(ProcessBuilder.Redirect.INHERIT)
        .start();
  }
}
