package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.store.JobToken;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests waiting calls whose threads sleep in the bell, or leave that to others. */
@Timeout(300)
class ReplyWaitersTest {
  private static final int SECONDS = 100;
  private static final byte[] VALUE = "value".getBytes(StandardCharsets.UTF_8);

  @TempDir private Path directory;

  private AeronStoreServer server;
  private AeronStore waiting;
  private AeronStore other;

  @BeforeEach
  void start() throws InterruptedException {
    InBell.link();
    server = new AeronStoreServer(options(0));
    waiting = InBell.ready(new AeronStore(options(server.port())));
    other = new AeronStore(options(server.port()).withLease(Duration.ofMillis(5001)));
  }

  @AfterEach
  void end() {
    if (server != null) {
      other.close();
      waiting.close();
      server.close();
    }
  }

  private AeronStoreOptions options(int port) {
    return AeronStoreOptions.of("127.0.0.1", port)
        .withDirectory(directory)
        .withToken(JobToken.NONE);
  }

  private FutureTask<byte[]> get(Thread.Builder kind, String key) {
    FutureTask<byte[]> task = new FutureTask<>(() -> waiting.get(key));
    kind.start(task);
    return task;
  }

  private static Thread.Builder platform() {
    return Thread.ofPlatform().daemon();
  }

  private void awaitWaiting(int calls) {
    InBell.await(() -> waiting.waiting() == calls && waiting.isInBell());
  }

  private static byte[] result(FutureTask<byte[]> task) throws Exception {
    return task.get(SECONDS, TimeUnit.SECONDS);
  }

  @Tag("full")
  @Test
  void whoSleepsInTheBellIsWokenByAnotherProcessesSet() throws Exception {
    FutureTask<byte[]> task = get(platform(), "key");
    awaitWaiting(1);
    other.set("key", VALUE);
    assertThat(result(task)).isEqualTo(VALUE);
    InBell.await(() -> !waiting.isInBell());
  }

  @Test
  void whoLeavesTheBellLeavesNobodyBehind() throws Exception {
    FutureTask<byte[]> first = get(platform(), "first");
    awaitWaiting(1);
    FutureTask<byte[]> second = get(platform(), "second");
    FutureTask<byte[]> third = get(Thread.ofVirtual(), "third");
    awaitWaiting(3);
    other.set("first", VALUE);
    assertThat(result(first)).isEqualTo(VALUE);
    awaitWaiting(2);
    other.set("third", VALUE);
    assertThat(result(third)).isEqualTo(VALUE);
    awaitWaiting(1);
    other.set("second", VALUE);
    assertThat(result(second)).isEqualTo(VALUE);
  }

  @Test
  void othersWithoutAThreadInTheBellAreWokenToo() throws Exception {
    List<FutureTask<byte[]>> tasks = new ArrayList<>();
    for (int i = 0; i < 16; i++) {
      tasks.add(get(Thread.ofVirtual(), "all"));
    }
    awaitWaiting(16);
    other.set("all", VALUE);
    for (FutureTask<byte[]> task : tasks) {
      assertThat(result(task)).isEqualTo(VALUE);
    }
  }

  @Test
  void anInterruptEndsASleepInTheBell() throws Exception {
    FutureTask<byte[]> task = new FutureTask<>(() -> waiting.get("never"));
    Thread thread = platform().start(task);
    awaitWaiting(1);
    thread.interrupt();
    assertThatThrownBy(() -> result(task))
        .isInstanceOf(ExecutionException.class)
        .cause()
        .isInstanceOf(StoreException.class)
        .hasMessage("interrupted while waiting");
  }

  @Test
  void theEndOfTheServerEndsASleepInTheBell() throws Exception {
    FutureTask<byte[]> first = get(platform(), "never");
    awaitWaiting(1);
    FutureTask<byte[]> second = get(platform(), "never");
    awaitWaiting(2);
    server.close();
    for (FutureTask<byte[]> task : List.of(first, second)) {
      assertThatThrownBy(() -> result(task))
          .isInstanceOf(ExecutionException.class)
          .cause()
          .isInstanceOf(StoreConnectionException.class)
          .hasMessageContaining("it was closed");
    }
  }

  @Test
  void aClientThatEndsIsSeenWhileTheServerSleepsInItsBell() throws Exception {
    FutureTask<byte[]> task = get(platform(), "will/1");
    awaitWaiting(1);
    try (StoreChild child = StoreChild.start("will", server.port())) {
      assertThat(child.line()).isEqualTo("READY true");
      awaitWaiting(1);
      child.kill();
    }
    assertThat(result(task)).isEqualTo("gone".getBytes(StandardCharsets.UTF_8));
  }

  @Test
  void aProcessThatMayNotCallNativeCodeTakesPart() throws Exception {
    FutureTask<byte[]> task = get(platform(), "here");
    awaitWaiting(1);
    try (StoreChild child = StoreChild.start("wait", server.port())) {
      assertThat(result(task)).asString(StandardCharsets.US_ASCII).isEqualTo("1");
      assertThat(child.line()).isEqualTo("READY true");
      InBell.await(server::sleeps);
      other.set("go", VALUE);
      assertThat(child.line()).isEqualTo("DONE");
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void noMessageIsMissed(boolean virtual) throws Exception {
    int rounds = 2000;
    Thread.Builder kind = virtual ? Thread.ofVirtual() : platform();
    FutureTask<Integer> task =
        new FutureTask<>(
            () -> {
              int late = 0;
              for (int round = 0; round < rounds; round++) {
                long start = System.nanoTime();
                waiting.await(List.of("ping" + round), Duration.ofSeconds(SECONDS));
                late += System.nanoTime() - start > TimeUnit.MILLISECONDS.toNanos(45) ? 1 : 0;
                waiting.set("pong" + round, VALUE);
              }
              return late;
            });
    kind.start(task);
    for (int round = 0; round < rounds; round++) {
      other.set("ping" + round, VALUE);
      other.await(List.of("pong" + round), Duration.ofSeconds(SECONDS));
      LockSupport.parkNanos(ThreadLocalRandom.current().nextInt(1_000_000));
    }
    // Each sleep in the bell is short, so a message that wakes no thread would show up as such a
    // pause.
    assertThat(task.get(SECONDS, TimeUnit.SECONDS)).isLessThan(rounds / 20);
  }
}
