package dev.tutti.checkpoint.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.EOFException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests that files are the same whether or not blocks of them go past the system's cache. */
class NioDiskTest {
  private static final int LARGE = (1 << 20) + 4096 + 77;

  @TempDir Path folder;

  @ParameterizedTest
  @CsvSource({
    "0, 0",
    "0, 1",
    "0, 4095",
    "0, 4096",
    "0, 1048577",
    "1, 1048576",
    "64, 8192",
    "4096, 12289",
    "0, 1056845"
  })
  void bytesComeBackWhateverTheirAlignment(int skipped, int count) throws IOException {
    byte[] bytes = new byte[LARGE + 4096];
    new Random(count).nextBytes(bytes);
    NioDisk disk = new NioDisk();
    Path file = folder.resolve("file");
    try (Arena arena = Arena.ofConfined();
        Disk.Output output = disk.create(file)) {
      ByteBuffer memory = arena.allocate(bytes.length, Disk.ALIGNMENT).asByteBuffer();
      memory.put(bytes);
      // The second part first, as two threads may write.
      output.write(LARGE, memory.slice(LARGE, 4096));
      output.write(skipped, memory.slice(skipped, count));
      output.force();
    }
    byte[] expected = new byte[bytes.length];
    System.arraycopy(bytes, skipped, expected, skipped, count);
    System.arraycopy(bytes, LARGE, expected, LARGE, 4096);
    assertThat(Files.readAllBytes(file)).isEqualTo(expected);
    for (boolean cached : new boolean[] {false, true}) {
      try (Arena arena = Arena.ofConfined();
          Disk.Input input = disk.open(file, cached)) {
        ByteBuffer memory = arena.allocate(bytes.length, Disk.ALIGNMENT).asByteBuffer();
        input.read(skipped, memory.limit(skipped + count).position(skipped));
        assertThat(memory.remaining()).isZero();
        assertThat(memory.flip().position(skipped).compareTo(slice(bytes, skipped, count)))
            .isZero();
        assertThat(input.length()).isEqualTo(bytes.length);
        assertThatThrownBy(() -> input.read(bytes.length - 1, ByteBuffer.allocateDirect(2)))
            .isInstanceOf(EOFException.class)
            .hasMessage("%s ends at byte %d", file, bytes.length);
      }
    }
  }

  private static ByteBuffer slice(byte[] bytes, int start, int count) {
    return ByteBuffer.wrap(bytes, start, count);
  }

  @Test
  void whatIsNoFileIsNotOpened() throws IOException {
    Path device = Files.createSymbolicLink(folder.resolve("zero"), Path.of("/dev/zero"));
    for (Path path : List.of(folder, device)) {
      assertThatThrownBy(() -> new NioDisk().open(path, true))
          .isInstanceOf(IOException.class)
          .hasMessage("%s: not a regular file", path);
    }
  }
}
