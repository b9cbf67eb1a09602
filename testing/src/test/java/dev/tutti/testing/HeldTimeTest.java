package dev.tutti.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.spi.Time;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.Test;

/** Tests that no wait ends because of time that passes while the clock is held. */
class HeldTimeTest {
  private static final long BRIEF_NANOS = 1_000_000;

  private final HeldTime time = new HeldTime();

  /** A wait for at most a short time. */
  private interface Wait {
    boolean ends() throws InterruptedException;
  }

  @Test
  void theClockGoesOnFromWhereItStood() {
    long before = time.nanoTime();
    time.hold();
    long held = time.nanoTime();
    assertThat(held).isGreaterThanOrEqualTo(before);
    LockSupport.parkNanos(BRIEF_NANOS);
    time.hold();
    assertThat(time.nanoTime()).isEqualTo(held);
    long real = Time.SYSTEM.nanoTime();
    time.release();
    time.release();
    assertThat(time.nanoTime() - held).isBetween(0L, Time.SYSTEM.nanoTime() - real);
  }

  @Test
  void aLockThatIsTakenIsAwaitedWhileTheClockStands() throws Exception {
    ReentrantLock lock = new ReentrantLock();
    lock.lock();
    assertEndsOnceReleased(() -> time.tryLock(lock, BRIEF_NANOS));
  }

  @Test
  void aThreadThatRunsIsAwaitedWhileTheClockStands() throws Exception {
    CountDownLatch never = new CountDownLatch(1);
    Thread running =
        Thread.startVirtualThread(
            () -> {
              try {
                never.await();
              } catch (InterruptedException _) {
                // Ends.
              }
            });
    assertEndsOnceReleased(() -> time.join(running, BRIEF_NANOS));
    running.interrupt();
    running.join();
    assertThat(time.join(running, BRIEF_NANOS)).isTrue();
  }

  @Test
  void aSignalIsAwaitedWhileTheClockStands() throws Exception {
    ReentrantLock lock = new ReentrantLock();
    Condition signal = lock.newCondition();
    assertEndsOnceReleased(
        () -> {
          lock.lock();
          try {
            long left = BRIEF_NANOS;
            while (left > 0) {
              left = time.await(lock, signal, left);
            }
            return false;
          } finally {
            lock.unlock();
          }
        });
  }

  /** Lets a thread wait for far longer than its wait may last, which ends it only once released. */
  private void assertEndsOnceReleased(Wait wait) throws Exception {
    time.hold();
    FutureTask<Boolean> waiting = new FutureTask<>(wait::ends);
    Thread.startVirtualThread(waiting);
    LockSupport.parkNanos(20 * BRIEF_NANOS);
    assertThat(waiting.isDone()).isFalse();
    time.release();
    assertThat(waiting.get()).isFalse();
  }
}
