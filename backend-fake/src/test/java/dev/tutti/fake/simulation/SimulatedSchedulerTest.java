package dev.tutti.fake.simulation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

@Isolated("threads of other tests in shared locks would bring in real time")
class SimulatedSchedulerTest {
  private static final long SECOND = 1_000_000_000;

  private interface Program {
    void run(Time time, List<String> log) throws Exception;
  }

  /**
   * What a run leaves: the hash of its trace, the log of its program, and its end in nanoseconds.
   */
  private record Outcome(long hash, List<String> log, long endNanos) {}

  /** Runs a program on a number of processes. */
  private static Outcome run(long seed, int processes, Program program) {
    SimulatedScheduler scheduler = new SimulatedScheduler(seed);
    List<String> log = new ArrayList<>();
    for (int i = 0; i < processes; i++) {
      SimulatedProcess process = new SimulatedProcess(scheduler, "process " + i);
      Thread _ =
          process.start(
              "main-" + i,
              () -> {
                try {
                  program.run(process.time(), log);
                } catch (Exception e) {
                  throw new IllegalStateException(e);
                }
              });
    }
    scheduler.run(3600 * SECOND);
    return new Outcome(scheduler.trace().hash(), log, scheduler.nowNanos());
  }

  @Test
  void timeLeapsToTheEndOfWaits() {
    Outcome outcome =
        run(
            1,
            1,
            (time, log) -> {
              long start = time.nanoTime();
              time.park("nothing", 5 * SECOND);
              ReentrantLock lock = new ReentrantLock();
              Condition never = lock.newCondition();
              lock.lock();
              try {
                assertThat(time.await(lock, never, 7 * SECOND)).isEqualTo(0);
                assertThat(time.await(lock, never, 0)).isEqualTo(0);
              } finally {
                lock.unlock();
              }
              synchronized (log) {
                time.await(log, 11 * SECOND);
              }
              assertThat(time.nanoTime() - start).isEqualTo(23 * SECOND);
              assertThat(time.left(time.deadline(Duration.ofSeconds(2)))).hasSeconds(2);
            });
    assertThat(outcome.endNanos).isEqualTo(23 * SECOND);
  }

  @Test
  void lateLocksAndThreadsEndTheirWaits() {
    Outcome outcome =
        run(
            2,
            1,
            (time, log) -> {
              ReentrantLock lock = new ReentrantLock();
              CountDownLatch locked = new CountDownLatch(1);
              Thread holder =
                  time.start(
                      "holder",
                      () -> {
                        lock.lock();
                        try {
                          locked.countDown();
                          time.park(lock, SECOND);
                        } finally {
                          lock.unlock();
                        }
                      });
              locked.await();
              assertThat(time.tryLock(lock, SECOND / 2)).isFalse();
              assertThat(time.join(holder, SECOND / 4)).isFalse();
              assertThat(time.tryLock(lock, SECOND)).isTrue();
              assertThat(time.join(holder, SECOND)).isTrue();
              log.add("done");
            });
    assertThat(outcome.log).containsExactly("done");
  }

  /** Uses every kind of wait, with threads that compete for locks and monitors. */
  @SuppressWarnings("ThreadPriorityCheck") // a holder of a monitor lets others come to it
  private static void compete(Time time, List<String> log) throws Exception {
    ReentrantLock lock = new ReentrantLock();
    Condition changed = lock.newCondition();
    Object monitor = new Object();
    int[] turn = new int[2];
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      int self = i;
      threads.add(
          time.start(
              "worker-" + i,
              () -> {
                try {
                  for (int round = 0; round < 3; round++) {
                    lock.lock();
                    try {
                      while (turn[0] % 4 != self) {
                        long _ = time.await(lock, changed, SECOND);
                      }
                      turn[0]++;
                      changed.signalAll();
                    } finally {
                      lock.unlock();
                    }
                    synchronized (monitor) {
                      Thread.yield();
                      turn[1]++;
                      monitor.notifyAll();
                      while (turn[1] < 4 * (round + 1)) {
                        time.await(monitor, SECOND);
                      }
                    }
                    log.add(self + ":" + round);
                    time.park(monitor, 1 + time.random() % 1000);
                  }
                } catch (InterruptedException e) {
                  throw new IllegalStateException(e);
                }
              }));
    }
    for (Thread thread : threads) {
      assertThat(time.join(thread, 100 * SECOND)).isTrue();
    }
    assertThat(turn).containsExactly(12, 12);
  }

  @Test
  void aSeedDecidesEverything() {
    Set<Long> hashes = new HashSet<>();
    Set<List<String>> logs = new HashSet<>();
    for (int seed = 0; seed < 50; seed++) {
      Outcome first = run(seed, 2, SimulatedSchedulerTest::compete);
      assertThat(run(seed, 2, SimulatedSchedulerTest::compete)).isEqualTo(first);
      hashes.add(first.hash);
      logs.add(first.log);
    }
    assertThat(hashes).hasSize(50);
    assertThat(logs.size()).isGreaterThan(25);
  }

  @Test
  void threadsThatWaitForEverAreShown() {
    assertThatThrownBy(() -> run(3, 1, (time, log) -> new CountDownLatch(1).await()))
        .hasMessageContaining("all threads wait for ever")
        .hasMessageContaining("\"main-0\" of process 0, WAITING")
        .hasMessageContaining("CountDownLatch.await");
  }

  @Test
  void aWaitThatUsesRealTimeFailsTheRun() {
    assertThatThrownBy(
            () ->
                run(
                    4,
                    2,
                    (time, log) -> {
                      LockSupport.parkNanos(1);
                      for (int i = 0; i < 1000; i++) {
                        time.park(log, SECOND);
                        new CountDownLatch(1).await(1, TimeUnit.MICROSECONDS);
                      }
                    }))
        .hasMessageContaining("by real time");
  }

  @Test
  void whatAThreadThrowsFailsTheRun() {
    assertThatThrownBy(
            () ->
                run(
                    5,
                    1,
                    (time, log) -> {
                      throw new IllegalArgumentException("bad");
                    }))
        .hasMessageContaining("thread main-0 threw")
        .hasMessageContaining("bad");
  }

  @Test
  void aPausedProcessGoesOnAfterwardsAndACrashedOneNever() {
    SimulatedScheduler scheduler = new SimulatedScheduler(6);
    List<String> log = new ArrayList<>();
    List<SimulatedProcess> processes = new ArrayList<>();
    for (String name : List.of("paused", "crashed", "other")) {
      SimulatedProcess process = new SimulatedProcess(scheduler, name);
      processes.add(process);
      Thread _ =
          process.start(
              name,
              () -> {
                for (int i = 1; i <= 3; i++) {
                  process.time().park(log, SECOND);
                  log.add(name + " " + process.time().nanoTime() / SECOND);
                }
              });
    }
    SimulatedProcess faults = new SimulatedProcess(scheduler, "faults");
    var _ = scheduler.at(SECOND * 3 / 2, faults, () -> processes.get(0).pause(10 * SECOND));
    var _ = scheduler.at(SECOND * 3 / 2, faults, () -> processes.get(1).crash());
    scheduler.run(3600 * SECOND);
    assertThat(log)
        .containsExactlyInAnyOrder(
            "paused 1", "crashed 1", "other 1", "other 2", "other 3", "paused 10", "paused 11");
  }

  /** A monitor that threads of runs and a thread outside enter. */
  private static final class Shared {
    private final boolean heldOutside;
    private final AtomicBoolean isHeld = new AtomicBoolean();
    private final AtomicInteger steps = new AtomicInteger();

    Shared(boolean heldOutside) {
      this.heldOutside = heldOutside;
    }

    void enter() {
      Thread self = Thread.currentThread();
      if (heldOutside) {
        Thread _ = Thread.ofPlatform().start(() -> hold(self));
        while (!isHeld.get()) {
          Thread.onSpinWait();
        }
      }
      synchronized (this) {
        isHeld.set(false);
      }
    }

    /** Holds the monitor until another thread of the run continues, or could have. */
    @SuppressWarnings("ThreadPriorityCheck") // gives the run the processor
    private void hold(Thread waiting) {
      synchronized (this) {
        isHeld.set(true);
        while (waiting.getState() != Thread.State.BLOCKED) {
          Thread.yield();
        }
        int before = steps.get();
        for (int look = 0; look < 100 && steps.get() == before; look++) {
          Thread.yield();
        }
      }
    }
  }

  @SuppressWarnings("ThreadPriorityCheck") // the others continue
  private static Outcome runAround(Shared shared, long seed) {
    return run(
        seed,
        3,
        (time, log) -> {
          for (int i = 0; i < 5; i++) {
            shared.enter();
            shared.steps.incrementAndGet();
            Thread.yield();
          }
        });
  }

  @Test
  void aMonitorThatAThreadOutsideHoldsChangesNoStep() {
    for (int seed = 0; seed < 10; seed++) {
      assertThat(runAround(new Shared(true), seed)).isEqualTo(runAround(new Shared(false), seed));
    }
  }
}
