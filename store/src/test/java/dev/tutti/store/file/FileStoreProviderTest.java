package dev.tutti.store.file;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.spi.StoreProvider;
import dev.tutti.spi.Time;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Opens files as the ranks of jobs do that a launcher restarts. */
class FileStoreProviderTest {
  @TempDir private Path directory;
  private Path file;

  @BeforeEach
  void nameFile() {
    file = directory.resolve("store");
  }

  private Store open(int restarts) {
    Settings settings =
        Settings.ofEnvironment(Map.of("TORCHELASTIC_RESTART_COUNT", Integer.toString(restarts)));
    return new FileStoreProvider()
        .open(StoreProvider.Request.of(file.toUri(), 0, 1).withSettings(settings));
  }

  /** Leaves the file of a process that was killed. */
  private void kill() throws Exception {
    Process dead = new ProcessBuilder("true").start();
    assertThat(dead.waitFor(4, TimeUnit.MINUTES)).isTrue();
    FileLog log = new FileLog(file, Time.SYSTEM);
    FileMembers.Member member =
        new FileMembers.Member(FileMembers.Member.hostOfThisProcess(Time.SYSTEM), dead.pid(), 0);
    log.transact(
        true,
        System.nanoTime() + TimeUnit.MINUTES.toNanos(1),
        changes -> {
          changes.add("refcount/", 1);
          changes.set("tutti/member/1", member.toString().getBytes(StandardCharsets.UTF_8));
          changes.set("/key", new byte[] {1});
          return true;
        });
  }

  @Test
  void eachAttemptOfARestartedJobBeginsWithoutKeys() throws Exception {
    kill();
    assertThatThrownBy(() -> open(0))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("left over from an earlier run");
    try (Store store = open(1)) {
      assertThat(store.check(List.of("key"))).isFalse();
      assertThat(file).doesNotExist();
      store.set("key", "value");
      try (Store next = open(2)) {
        assertThat(next.check(List.of("key"))).isFalse();
        assertThatThrownBy(() -> store.set("key", "late"))
            .isInstanceOf(StoreException.class)
            .hasMessageContaining("is gone");
      }
    }
    assertThat(directory).isEmptyDirectory();
  }

  @Test
  void aFileThatIsNoStoreIsNotDeleted() throws Exception {
    Files.writeString(file, "the work of somebody's life");
    open(1).close();
    assertThat(file).hasContent("the work of somebody's life");
    Files.writeString(file, "");
    open(1).close();
    assertThat(file).isEmptyFile();
  }
}
