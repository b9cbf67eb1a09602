package dev.tutti.gloo.shm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import dev.tutti.testkit.Tmpfs;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Creates shared memory in file systems that are full or become full. */
@Timeout(300)
class ShmFileTest {
  private static final long BYTES = 48L << 20;
  private static final long SPARE = 4L << 20;

  @TempDir Path directory;

  private static List<String> files(Path directory) throws IOException {
    try (Stream<Path> files = Files.list(directory)) {
      return files.map(file -> file.getFileName().toString()).toList();
    }
  }

  @Test
  void aFullFileSystemIsNoticedBeforeAnythingIsMade() throws Exception {
    try (Tmpfs tmpfs = Tmpfs.mount(directory, "size=1m")) {
      assertThatThrownBy(() -> ShmFile.create(directory, 2 << 20, Time.SYSTEM))
          .isInstanceOf(IOException.class)
          .hasMessage("no room for 2097152 bytes of shared memory in " + directory);
      assertThat(files(tmpfs.directory())).isEmpty();
    }
  }

  @Test
  void anInterruptedThreadMakesAndMapsIt() throws Exception {
    Thread.currentThread().interrupt();
    try (ShmFile memory = ShmFile.create(directory, 1 << 16, Time.SYSTEM)) {
      assertThat(Thread.currentThread().isInterrupted()).isTrue();
      try (ShmFile mapped = ShmFile.open(directory, memory.describe(), 1 << 16, 1, Time.SYSTEM)) {
        assertThat(Thread.interrupted()).isTrue();
        assertThat(memory.isJoined(1)).isTrue();
        mapped.segment().set(ValueLayout.JAVA_BYTE, (1 << 16) - 1, (byte) 3);
        assertThat(memory.segment().get(ValueLayout.JAVA_BYTE, (1 << 16) - 1)).isEqualTo((byte) 3);
      }
      memory.unlink();
    }
  }

  /** Lets another writer take the space between the check for it and the last byte. */
  @Test
  void aFileSystemThatFillsUpMeanwhileIsNoticedToo() throws Exception {
    try (Tmpfs tmpfs = Tmpfs.mount(directory, "size=" + (BYTES + SPARE))) {
      Time filling =
          new ForwardingTime(Time.SYSTEM) {
            @Override
            public long random() {
              // The number of the memory is drawn when there was room for it.
              assertThat(fill(tmpfs)).isEqualTo(BYTES + SPARE);
              return super.random();
            }
          };
      assertThatThrownBy(() -> ShmFile.create(directory, BYTES, filling))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("no room for " + BYTES + " bytes of shared memory in")
          .hasMessageContaining("No space left on device");
      assertThat(files(directory)).containsExactly("filler");
    }
  }

  private static long fill(Tmpfs tmpfs) {
    try {
      return tmpfs.fill("filler");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Writes to all of the memory after the rest of the file system is full: no page is missing. */
  @Test
  void whatWasMadeIsThereWhateverHappensThen() throws Exception {
    try (Tmpfs tmpfs = Tmpfs.mount(directory, "size=8m");
        ShmFile memory = ShmFile.create(directory, 4 << 20, Time.SYSTEM)) {
      memory.unlink();
      assertThat(tmpfs.fill("filler")).isBetween(2L << 20, 4L << 20);
      MemorySegment segment = memory.segment();
      for (long at = 4096; at < segment.byteSize(); at += 4096) {
        segment.set(ValueLayout.JAVA_LONG, at, at);
      }
      for (long at = 4096; at < segment.byteSize(); at += 4096) {
        assertThat(segment.get(ValueLayout.JAVA_LONG, at)).isEqualTo(at);
      }
    }
  }

  /** Closes from two threads while two others write: a thread that comes too late gets an error. */
  @Test
  @Timeout(900)
  void memoryIsUnmappedOnceWheneverItIsClosed() throws Exception {
    for (int round = 0; round < 500; round++) {
      ShmFile memory = ShmFile.ofOne(4096, Time.SYSTEM);
      CyclicBarrier start = new CyclicBarrier(4);
      Callable<Void> writer =
          () -> {
            start.await(60, TimeUnit.SECONDS);
            for (long written = 0; memory.segment().scope().isAlive(); written++) {
              try {
                memory.segment().set(ValueLayout.JAVA_LONG, 8 * (written % 512), written);
              } catch (IllegalStateException e) {
                assertThat(e).hasMessage("Already closed");
              }
            }
            return null;
          };
      Callable<Void> closer =
          () -> {
            start.await(60, TimeUnit.SECONDS);
            memory.close();
            assertThat(memory.segment().scope().isAlive()).isFalse();
            return null;
          };
      List<FutureTask<Void>> tasks =
          Stream.of(writer, writer, closer, closer).map(FutureTask::new).toList();
      tasks.forEach(task -> Thread.ofPlatform().start(task));
      for (FutureTask<Void> task : tasks) {
        task.get(60, TimeUnit.SECONDS);
      }
    }
  }

  /** Lets a thread read into the memory, which keeps other threads from unmapping it meanwhile. */
  @Test
  void closingWaitsForACallOfTheSystem() throws Exception {
    ShmFile memory = ShmFile.ofOne(4096, Time.SYSTEM);
    Pipe pipe = Pipe.open();
    try (Pipe.SourceChannel source = pipe.source();
        Pipe.SinkChannel sink = pipe.sink()) {
      FutureTask<Integer> reading =
          new FutureTask<>(() -> source.read(memory.segment().asByteBuffer()));
      Thread reader = Thread.ofPlatform().daemon().start(reading);
      until(
          () ->
              Arrays.stream(reader.getStackTrace())
                  .anyMatch(frame -> frame.getMethodName().equals("read0")));
      FutureTask<Boolean> closing =
          new FutureTask<>(
              () -> {
                memory.close();
                return memory.segment().scope().isAlive();
              });
      Thread closer = Thread.ofPlatform().daemon().start(closing);
      until(() -> closing.isDone() || closer.getState() == Thread.State.TIMED_WAITING);
      sink.write(ByteBuffer.allocate(1));
      assertThat(reading.get(60, TimeUnit.SECONDS)).isEqualTo(1);
      assertThat(closing.get(60, TimeUnit.SECONDS)).isFalse();
    }
  }

  private static void until(BooleanSupplier condition) {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(100);
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime()).isLessThan(deadline);
      Thread.onSpinWait();
    }
  }
}
