package dev.tutti.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.testkit.Execution;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.opentest4j.TestAbortedException;

/** Tests that {@link World} fails a class that leaves shared memory. */
@ResourceLock("shared memory that worlds leave")
class LeftMemoryTest {
  @Test
  void sharedMemoryThatIsLeftFailsTheClass() throws IOException {
    assumeThat(
            Files.isWritable(Path.of("/dev/shm")) && Files.isReadable(Path.of("/proc/self/maps")))
        .as("needs /dev/shm and /proc/self/maps")
        .isTrue();
    LeakingMemory.arena = Arena.ofShared();
    try {
      Execution execution =
          Execution.run(Map.of(LeakCheck.GRACE_SECONDS, "1"), LeakingMemory.class);
      assertThat(execution.thrownAfter(LeakingMemory.class))
          .hasMessageContaining("shared memory left by")
          .hasMessageContaining(LeakingMemory.class.getName())
          .hasMessageContaining("mapped " + LeakingMemory.FILE)
          .hasMessageContaining("file " + LeakingMemory.FILE);
    } finally {
      LeakingMemory.arena.close();
      Files.deleteIfExists(LeakingMemory.FILE);
    }
  }

  static class LeakingMemory {
    static final Path FILE = Path.of("/dev/shm/tutti-test-" + ProcessHandle.current().pid());
    static volatile Arena arena = Arena.ofShared();

    @World(size = 1)
    void leaks() throws IOException {
      try (FileChannel channel =
          FileChannel.open(
              FILE, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
        MemorySegment segment = channel.map(FileChannel.MapMode.READ_WRITE, 0, 4096, arena);
        assertThat(segment.byteSize()).isEqualTo(4096);
      }
    }
  }

  @Test
  void sharedMemoryOfOneWorldMayBeFreedLate() throws IOException {
    assertThat(Execution.of(LateMemory.class).failures()).isEmpty();
  }

  static class LateMemory {
    @World(size = 1)
    void maps() throws IOException {
      Path file = Path.of("/dev/shm/tutti-late-" + ProcessHandle.current().pid());
      if (!Files.isWritable(file.getParent())) {
        throw new TestAbortedException("needs /dev/shm");
      }
      try (FileChannel channel =
          FileChannel.open(
              file, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
        channel.map(FileChannel.MapMode.READ_WRITE, 0, 4096, Arena.ofAuto());
      } finally {
        Files.delete(file);
      }
    }
  }
}
