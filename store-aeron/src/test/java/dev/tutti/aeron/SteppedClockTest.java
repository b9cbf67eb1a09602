package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.Store;
import dev.tutti.store.JobToken;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Steps the wall clock of servers, members and clients, each a process of its own into which a
 * library is preloaded.
 */
@Timeout(600)
class SteppedClockTest {
  private static final Path SOURCE = Path.of("src/test/c/step.c");
  private static final Duration LONG = Duration.ofSeconds(100);
  private static final long YEAR = 365 * 24 * 3600L;

  /** Longer than Aeron takes to look for the dead twice, which it does once a second. */
  private static final long SEEN_NANOS = TimeUnit.MILLISECONDS.toNanos(2500);

  private static final long PAUSE_NANOS = 1_000_000;

  @TempDir private Path directory;

  private Path library;

  @BeforeEach
  void compile() throws Exception {
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

  /** A process with a wall clock of its own. */
  private final class Stepped implements AutoCloseable {
    final StoreChild child;
    final Path file;

    Stepped(String name, String role, int port, String... environment) throws Exception {
      file = directory.resolve(name + ".step");
      step(0);
      List<String> all = new ArrayList<>(List.of(environment));
      all.add("LD_PRELOAD=" + library);
      all.add("STEP_FILE=" + file);
      all.add("TUTTI_AERON_DIR=" + directory);
      child = StoreChild.start(role, port, all.toArray(String[]::new));
    }

    void step(long seconds) throws Exception {
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
  private static final class Counter {
    final Store store;
    long count;

    Counter(Store store) {
      this.store = store;
    }

    void call() {
      assertThat(store.add("count", 1)).isEqualTo(++count);
    }
  }

  /** Calls stores for as long as it takes to see a step. */
  private static void call(Counter... counters) {
    long end = System.nanoTime() + SEEN_NANOS;
    while (System.nanoTime() - end < 0) {
      for (Counter counter : counters) {
        counter.call();
      }
      LockSupport.parkNanos(PAUSE_NANOS);
    }
  }

  private AeronStoreOptions options(int port) {
    return AeronStoreOptions.of("127.0.0.1", port)
        .withDirectory(directory)
        .withToken(JobToken.NONE)
        .withTimeout(LONG);
  }

  /** A server with a client in another process and one in this. */
  private final class Served implements AutoCloseable {
    final long seconds;
    final Stepped server;
    final Stepped client;
    final AeronStore store;
    final Counter counter;
    final int port;

    Served(long seconds) throws Exception {
      this.seconds = seconds;
      server = new Stepped("server" + seconds, "serve", 0);
      port = Integer.parseInt(server.child.line().substring("READY ".length()));
      client = new Stepped("client" + seconds, "wait", port);
      assertThat(client.child.line()).isEqualTo("READY true");
      store = new AeronStore(options(port));
      counter = new Counter(store);
    }

    void requireClientIsDone() throws Exception {
      store.set("go", "");
      assertThat(client.child.line()).as("client stepped by %d s", seconds).isEqualTo("DONE");
      try (Store later = new AeronStore(options(port).withLease(Duration.ofSeconds(6)))) {
        assertThat(later.add("here", 0)).isEqualTo(1);
      }
    }

    @Override
    public void close() throws IOException {
      store.close();
      client.close();
      server.close();
    }
  }

  @Test
  void serversAndTheirClientsGoOn() throws Exception {
    try (Served little = new Served(40);
        Served forth = new Served(3600);
        Served back = new Served(-3600);
        Served far = new Served(YEAR)) {
      List<Served> all = List.of(little, forth, back, far);
      Counter[] counters = all.stream().map(each -> each.counter).toArray(Counter[]::new);
      for (Served each : all) {
        each.server.step(each.seconds);
      }
      call(counters);
      for (Served each : all) {
        each.server.step(0);
        each.client.step(each.seconds);
      }
      call(counters);
      for (Served each : all) {
        each.requireClientIsDone();
      }
    }
  }

  @Test
  void aClusterAndItsClientsGoOn() throws Exception {
    String members = TestCluster.freeMembers();
    List<Stepped> all = new ArrayList<>();
    try {
      for (int i = 0; i < TestCluster.SIZE; i++) {
        all.add(
            new Stepped(
                "member" + i,
                "member",
                i,
                "MEMBERS=" + members,
                "DATA=" + directory.resolve("m" + i)));
      }
      for (Stepped member : all) {
        assertThat(member.child.line()).isEqualTo("READY true");
      }
      try (AeronClusterStore store = new AeronClusterStore(members, options(0));
          Stepped client = new Stepped("client", "wait", 1, "MEMBERS=" + members)) {
        assertThat(client.child.line()).isEqualTo("READY false");
        int leader = store.leader();
        Counter counter = new Counter(store);
        for (long seconds : new long[] {3600, -3600, YEAR}) {
          all.get(leader).step(seconds);
          call(counter);
          all.get((leader + 1) % TestCluster.SIZE).step(-seconds);
          call(counter);
        }
        client.step(3600);
        call(counter);
        assertThat(store.leader()).isEqualTo(leader);
        store.set("go", "");
        assertThat(client.child.line()).isEqualTo("DONE");
      }
    } finally {
      for (Stepped member : all) {
        member.close();
      }
    }
  }
}
