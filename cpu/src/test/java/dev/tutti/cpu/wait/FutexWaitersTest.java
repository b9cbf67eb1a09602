package dev.tutti.cpu.wait;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.spi.Time;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class FutexWaitersTest {
  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();
  private static final long OFFSET = 64;
  private static final long LONG = Duration.ofDays(1).toNanos();

  private final MemorySegment memory = Arena.ofAuto().allocate(2 * OFFSET, Long.BYTES);
  private final FutexWaiters sleepers = new FutexWaiters(memory, 0, Time.SYSTEM);

  @BeforeEach
  void needsFutex() {
    assumeThat(Futex.isAvailable()).as("this system has a futex").isTrue();
    Futex.link();
    awaitLinked();
  }

  private static void awaitLinked() {
    while (!Futex.isLinked()) {
      LockSupport.parkNanos(1_000_000);
    }
  }

  @Test
  void aChangeWakesASleeper() throws Exception {
    FutureTask<Long> sleeper = start(7, LONG);
    while (sleepers.count() == 0) {
      Thread.onSpinWait();
    }
    // The waiter may have counted itself but not be asleep yet; then the change keeps it from
    // sleeping.
    WORD.setRelease(memory, OFFSET, 8L);
    sleepers.wake(OFFSET);
    Long _ = sleeper.get();
    assertThat(sleepers.count()).isZero();
  }

  @Test
  void nobodySleepsOnAWordThatHasChanged() throws Exception {
    WORD.setRelease(memory, OFFSET, 8L);
    Long _ = start(7, LONG).get();
    assertThat(sleepers.count()).isZero();
  }

  @Test
  void aSleepHasALimit() throws Exception {
    WORD.setRelease(memory, OFFSET, 7L);
    long nanos = Duration.ofMillis(30).toNanos();
    assertThat(start(7, nanos).get(60, TimeUnit.SECONDS)).isGreaterThanOrEqualTo(nanos);
    assertThat(sleepers.count()).isZero();
  }

  @Test
  void virtualThreadsSleepToo() throws Exception {
    FutureTask<Long> sleeper = task(0, Duration.ofMillis(30).toNanos());
    Thread.ofVirtual().start(sleeper);
    assertThat(sleeper.get(60, TimeUnit.SECONDS)).isPositive();
    assertThat(sleepers.count()).isZero();
  }

  private FutureTask<Long> start(long seen, long nanos) {
    WORD.compareAndSet(memory, OFFSET, 0L, seen);
    FutureTask<Long> task = task(seen, nanos);
    Thread.ofPlatform().daemon().start(task);
    return task;
  }

  private FutureTask<Long> task(long seen, long nanos) {
    return new FutureTask<>(
        () -> {
          long start = System.nanoTime();
          sleepers.sleep(new Futex(), OFFSET, seen, nanos);
          return System.nanoTime() - start;
        });
  }
}
