package dev.tutti.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.OutputStream;
import java.lang.foreign.Arena;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Closes a file system in which this process has files, or none. */
class TmpfsTest {
  @TempDir Path directory;

  @Test
  void aFileThatIsOpenIsNamed() throws IOException {
    Tmpfs tmpfs = Tmpfs.mount(directory, "size=1m");
    Path file = directory.resolve("file");
    try (OutputStream _ = Files.newOutputStream(file)) {
      assertThatThrownBy(tmpfs::close)
          .isInstanceOf(IOException.class)
          .hasMessage("this process still has open " + file);
    }
    assertThat(directory).isEmptyDirectory();
  }

  @Test
  void aFileThatIsMappedIsNamed() throws IOException {
    Tmpfs tmpfs = Tmpfs.mount(directory, "size=1m");
    Path file = Files.write(directory.resolve("file"), new byte[4096]);
    try (Arena arena = Arena.ofConfined()) {
      try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
        channel.map(MapMode.READ_ONLY, 0, 4096, arena);
      }
      assertThatThrownBy(tmpfs::close)
          .isInstanceOf(IOException.class)
          .hasMessageStartingWith("this process still has open ")
          .hasMessageEndingWith(file.toString());
    }
  }

  @Test
  void whatWasClosedIsNoObstacle() throws IOException {
    try (Tmpfs tmpfs = Tmpfs.mount(directory, "size=1m")) {
      assertThat(tmpfs.fill("file")).isEqualTo(1 << 20);
    }
    assertThat(directory).isEmptyDirectory();
  }
}
