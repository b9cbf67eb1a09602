package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.Store;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** Processes whose wall clocks can be stepped, by a library that is preloaded into each. */
public final class SteppedClocks {
  private static final Path SOURCE = Path.of("../store-aeron/src/test/c/step.c");

  /** Longer than Aeron takes to look for the dead twice, which it does once a second. */
  private static final long SEEN_NANOS = TimeUnit.MILLISECONDS.toNanos(2500);

  private static final long PAUSE_NANOS = 1_000_000;

  private final Path directory;
  private final Path library;

  /** Compiles the library; skips the test if there is no compiler. */
  public SteppedClocks(Path directory) throws Exception {
    this.directory = directory;
    library = directory.resolve("step.so");
    int failed = 1;
    try {
      failed =
          new ProcessBuilder("cc", "-shared", "-fPIC", "-o", library.toString(), SOURCE.toString())
              .inheritIO()
              .start()
              .waitFor();
    } catch (IOException e) {
      assumeThat(e).as("a C compiler").isNull();
    }
    assertThat(failed).isZero();
  }

  /** A starter of a child process with some environment. */
  public interface Start {
    StoreChild start(String[] environment) throws Exception;
  }

  /** A process with a wall clock of its own. */
  public final class Stepped implements AutoCloseable {
    public final StoreChild child;
    private final Path file;

    public Stepped(String name, Start start, String... environment) throws Exception {
      file = directory.resolve(name + ".step");
      step(0);
      List<String> all = new ArrayList<>(List.of(environment));
      all.add("LD_PRELOAD=" + library);
      all.add("STEP_FILE=" + file);
      all.add("TUTTI_AERON_DIR=" + directory);
      child = start.start(all.toArray(String[]::new));
    }

    public void step(long seconds) throws Exception {
      try (FileChannel channel =
          FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
        channel.write(
            ByteBuffer.allocate(Long.BYTES).order(ByteOrder.nativeOrder()).putLong(0, seconds));
      }
    }

    @Override
    public void close() throws IOException {
      child.close();
    }
  }

  /** A store that counts its calls, each of which must succeed. */
  public static final class Counter {
    private final Store store;
    private long count;

    public Counter(Store store) {
      this.store = store;
    }

    private void call() {
      assertThat(store.add("count", 1)).isEqualTo(++count);
    }
  }

  /** Calls stores for as long as it takes to see a step. */
  public static void call(Counter... counters) {
    long end = System.nanoTime() + SEEN_NANOS;
    while (System.nanoTime() - end < 0) {
      for (Counter counter : counters) {
        counter.call();
      }
      LockSupport.parkNanos(PAUSE_NANOS);
    }
  }
}
