package dev.tutti.contracts.history;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreException;
import dev.tutti.contracts.TestTier;
import dev.tutti.store.file.FileStore;
import dev.tutti.testkit.Tmpfs;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests what clients of a store file observe when other writers are killed, and when the disk is
 * full.
 */
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

  @Test
  void aFullDiskRefusesCallsAndLosesNothing() throws Exception {
    try (Tmpfs disk = Tmpfs.mount(directory, "size=64m")) {
      Path file = disk.directory().resolve("store");
      byte[] huge = new byte[1 << 20]; // which never fits where others have just cut a record
      try (HistoryRun run = new HistoryRun(1, 3, true, LARGE, () -> new FileStore(file, 0));
          FileStore store = new FileStore(file, 0)) {
        for (int i = 0; i < FAULTS; i++) {
          byte[] value = {(byte) i};
          store.set("own", value);
          assertThat(store.add(COUNTER, 1)).isEqualTo(i + 1);
          run.awaitAnswers(100);
          assertThat(disk.fill("filler")).isPositive();
          Arrays.fill(huge, (byte) i);
          assertThatThrownBy(() -> store.set("own", huge))
              .isInstanceOf(StoreException.class)
              .hasMessageContaining("store file " + file)
              .hasMessageContaining("No space left on device");
          assertThat(store.get("own")).isEqualTo(value);
          Files.delete(disk.directory().resolve("filler"));
          run.awaitAnswers(100);
          try (FileStore other = new FileStore(file, 0)) {
            assertThat(other.get("own")).isEqualTo(value);
            other.set("own", huge);
            assertThat(other.add(COUNTER, 0)).isEqualTo(i + 1);
          }
          assertThat(store.get("own")).isEqualTo(huge);
        }
        assertThat(run.end()).isEmpty();
        assertThat(run.history()).anyMatch(call -> !call.isAnswered());
      }
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
