package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.aeron.session.WaitingCalls;
import dev.tutti.shared.Until;
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
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
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
  private static final int ROUNDS = 2000;
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
    Until.holds(() -> WaitingCalls.of(waiting) == calls && waiting.isInBell());
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
    Until.holds(() -> !waiting.isInBell());
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
      Until.holds(server::sleeps);
      other.set("go", VALUE);
      assertThat(child.line()).isEqualTo("DONE");
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void noMessageIsMissed(boolean virtual) throws Exception {
    AtomicBoolean last = new AtomicBoolean();
    Thread.Builder kind = virtual ? Thread.ofVirtual() : platform();
    try (Pulses pulses = new Pulses()) {
      FutureTask<Rounds> task = new FutureTask<>(() -> answer(last, pulses));
      kind.start(task);
      long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
      for (int round = 0; !last.get(); round++) {
        last.set(round == ROUNDS - 1 || System.nanoTime() > end);
        other.set("ping" + round, VALUE);
        other.await(List.of("pong" + round), Duration.ofSeconds(SECONDS));
        LockSupport.parkNanos(ThreadLocalRandom.current().nextInt(1_000_000));
      }
      Rounds rounds = task.get(SECONDS, TimeUnit.SECONDS);
      // Each sleep in the bell is short, so a message that wakes no thread would show up as such a
      // pause.
      assertThat(rounds.quick + rounds.late).as("%s", rounds).isPositive();
      assertThat(rounds.late)
          .as("%s", rounds)
          .isLessThan(Math.max(rounds.quick + rounds.late, 100) / 20);
    }
  }

  /** Answers each ping until the last one. */
  private Rounds answer(AtomicBoolean last, Pulses pulses) {
    int quick = 0;
    int late = 0;
    int unknown = 0;
    boolean more = true;
    for (int round = 0; more; round++) {
      long start = System.nanoTime();
      waiting.await(List.of("ping" + round), Duration.ofSeconds(SECONDS));
      if (System.nanoTime() - start <= TimeUnit.MILLISECONDS.toNanos(45)) {
        quick++;
      } else if (pulses.areSteadySince(start)) {
        late++;
      } else {
        unknown++;
      }
      more = !last.get();
      waiting.set("pong" + round, VALUE);
    }
    return new Rounds(quick, late, unknown);
  }

  /** Counts of rounds; of slow ones on a machine that was busy elsewhere, nothing is known. */
  private record Rounds(int quick, int late, int unknown) {}

  /** Threads that wake up often, and so notice when the machine makes threads wait. */
  private static final class Pulses implements AutoCloseable {
    private static final long GAP_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private final AtomicLongArray beats = new AtomicLongArray(4);
    private final AtomicLong lastGap = new AtomicLong(System.nanoTime());
    private volatile boolean closed;

    Pulses() {
      for (int i = 0; i < beats.length(); i++) {
        int self = i;
        beats.set(self, System.nanoTime());
        platform().start(() -> beat(self));
      }
    }

    private void beat(int self) {
      while (!closed) {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
        long now = System.nanoTime();
        if (now - beats.get(self) > GAP_NANOS) {
          lastGap.set(now);
        }
        beats.set(self, now);
      }
    }

    /** Returns whether no thread has had to wait since then. */
    boolean areSteadySince(long start) {
      for (int i = 0; i < beats.length(); i++) {
        if (System.nanoTime() - beats.get(i) > GAP_NANOS) {
          return false;
        }
      }
      return lastGap.get() - start < 0;
    }

    @Override
    public void close() {
      closed = true;
    }
  }
}
