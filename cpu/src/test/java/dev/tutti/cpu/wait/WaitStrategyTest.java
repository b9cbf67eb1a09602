package dev.tutti.cpu.wait;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cpu.wait.WaitStrategy.Stage;
import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class WaitStrategyTest {
  private static final long MICRO = 1_000;
  private static final long MILLI = 1_000_000;

  private long now = Long.MAX_VALUE - 20 * MICRO;
  private long step;

  /** A clock that advances each time it is read. */
  private final Time ticking =
      new ForwardingTime(Time.SYSTEM) {
        @Override
        public long nanoTime() {
          now += step;
          return now;
        }
      };

  private final BusyCores cores = new BusyCores();
  private final WaitStrategy wait = strategy(30 * MICRO, 50 * MICRO, 0);

  private WaitStrategy strategy(long spin, long yield, int growth) {
    return new WaitStrategy(spin, yield, 1, 8, growth, cores, ticking);
  }

  @Test
  void spinsThenYieldsThenSleeps() {
    wait.start();
    long start = now;
    assertThat(wait.stage(start)).isEqualTo(Stage.SPIN);
    assertThat(wait.stage(start + 30 * MICRO - 1)).isEqualTo(Stage.SPIN);
    assertThat(wait.stage(start + 30 * MICRO)).isEqualTo(Stage.YIELD);
    assertThat(wait.stage(start + 80 * MICRO - 1)).isEqualTo(Stage.YIELD);
    assertThat(wait.stage(start + 80 * MICRO)).isEqualTo(Stage.SLEEP);
    assertThat(wait.elapsed()).isEqualTo(80 * MICRO);
  }

  /** A thread may spin for long, and still has to notice that its wait is over. */
  @Test
  void isToCheckOnceAMillisecondEvenWhileItSpins() {
    WaitStrategy spinning = strategy(Long.MAX_VALUE - 1, 0, 0);
    spinning.start();
    assertThat(spinning.isCheckDue()).isFalse();
    step = MILLI / 4;
    int checks = 0;
    for (int i = 0; i < 40; i++) {
      spinning.rest();
      checks += spinning.isCheckDue() ? 1 : 0;
    }
    assertThat(checks).isEqualTo(10);
    spinning.start();
    assertThat(spinning.isCheckDue()).isFalse();
  }

  @Test
  void staysAwakeForItsTimeAndAgainInTheNextWait() {
    step = 5 * MICRO;
    int looks = 0;
    while (wait.staysAwake()) {
      looks++;
    }
    assertThat(looks).isEqualTo(16);
    assertThat(wait.staysAwake()).isFalse();
    wait.reset();
    assertThat(wait.staysAwake()).isTrue();
    assertThat(wait.elapsed()).isEqualTo(5 * MICRO);
  }

  @Test
  void doesNotYieldForAWhileAfterAnotherThreadKeptTheCore() {
    WaitStrategy yielding = strategy(0, 50 * MICRO, 0);
    yielding.start();
    step = MILLI + 1;
    assertThat(yielding.staysAwake()).as("looks once after it comes back").isTrue();
    step = 0;
    yielding.start();
    assertThat(yielding.staysAwake()).isFalse();
    WaitStrategy other = strategy(0, 50 * MICRO, 0);
    other.start();
    assertThat(other.staysAwake()).as("of the same cores").isFalse();
    wait.start();
    assertThat(wait.staysAwake()).as("nor does it spin").isFalse();
    WaitStrategy forEver = strategy(Long.MAX_VALUE, 0, 0);
    forEver.start();
    assertThat(forEver.staysAwake()).as("unless it shall for ever").isTrue();
    now += 5 * MILLI;
    yielding.start();
    assertThat(yielding.staysAwake()).isTrue();
  }

  @Test
  void notesThatAnotherThreadTookTheCoreOfOneThatSpins() {
    wait.start();
    step = MILLI + 1;
    assertThat(wait.staysAwake()).isTrue();
    step = 0;
    assertThat(cores.areBusy(now)).isTrue();
    assertThat(wait.staysAwake()).isFalse();
  }

  @Test
  void notesThatAnotherThreadTookTheCoreOfACallerThatSpins() {
    WaitStrategy spinning = strategy(10 * MILLI, 0, 0);
    assertThat(spinning.stage(now)).isEqualTo(Stage.SPIN);
    assertThat(spinning.stage(now + MILLI / 2)).isEqualTo(Stage.SPIN);
    assertThat(spinning.stage(now + 2 * MILLI)).isEqualTo(Stage.SLEEP);
  }

  @Test
  void notesAYieldOfItsCaller() {
    WaitStrategy yielding = strategy(0, 50 * MICRO, 0);
    assertThat(yielding.stage(now)).isEqualTo(Stage.YIELD);
    now += 2 * MILLI;
    yielding.yielded();
    assertThat(cores.areBusy(now)).isTrue();
  }

  @Test
  void restsUntilALimitOnly() {
    WaitStrategy sleeping = strategy(0, 0, 0);
    sleeping.start();
    step = 10 * MICRO;
    int pauses = 0;
    while (sleeping.pausesWithin(35 * MICRO)) {
      pauses++;
    }
    assertThat(pauses).isEqualTo(4);
  }

  @Test
  void pausesGrowUpToALimit() {
    WaitStrategy doubling = strategy(0, 0, 0);
    doubling.start();
    assertThat(pauses(doubling)).containsExactly(1, 2, 4, 8, 8);
    WaitStrategy slow = new WaitStrategy(0, 0, 32, 40, 4, cores, ticking);
    slow.start();
    assertThat(pauses(slow)).containsExactly(32, 34, 36, 38, 40);
  }

  private static long[] pauses(WaitStrategy wait) {
    long[] all = new long[5];
    for (int i = 0; i < all.length; i++) {
      all[i] = wait.nextPause();
      wait.rest();
    }
    return all;
  }

  @Test
  void waitsForAConditionUntilADeadline() {
    AtomicInteger looks = new AtomicInteger();
    long deadline = System.nanoTime() + 60_000 * MILLI;
    assertThat(WaitStrategy.until(() -> looks.incrementAndGet() == 3, deadline, 1, Time.SYSTEM))
        .isTrue();
    assertThat(looks).hasValue(3);
    assertThat(
            WaitStrategy.until(
                () -> looks.incrementAndGet() == 0, System.nanoTime(), 1, Time.SYSTEM))
        .isFalse();
    assertThat(looks).hasValue(4);
  }

  @Test
  void anInterruptIsKeptAndDoesNotKeepAThreadFromSleeping() {
    long pause = 2 * MILLI;
    Thread.currentThread().interrupt();
    long before = System.nanoTime();
    AtomicInteger looks = new AtomicInteger();
    assertThat(
            WaitStrategy.until(
                () -> looks.incrementAndGet() < 0, before + 10 * pause, pause, Time.SYSTEM))
        .isFalse();
    assertThat(Thread.interrupted()).isTrue();
    assertThat(looks.get()).isLessThanOrEqualTo(12);
  }
}
