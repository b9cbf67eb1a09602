package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.aeron.driver.Doorbell;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.aeron.wire.Timing;
import dev.tutti.cpu.wait.Futex;
import io.aeron.Aeron;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(300)
class DoorbellTest {
  private static final long LONG = TimeUnit.SECONDS.toNanos(45);

  @TempDir private Path directory;

  private EmbeddedDriver driver;
  private Aeron aeron;
  private Doorbell bell;

  @BeforeEach
  void start() {
    Timing timing = Timing.of(Duration.ofSeconds(5));
    driver = EmbeddedDriver.start(directory, "", timing, 1);
    aeron = EmbeddedDriver.connect(driver.path(), timing);
    bell = Doorbell.make(aeron);
  }

  @AfterEach
  void end() {
    aeron.close();
    driver.close();
  }

  private FutureTask<Long> sleeper() {
    FutureTask<Long> task =
        new FutureTask<>(
            () -> {
              long start = System.nanoTime();
              bell.sleep(new Futex(), LONG);
              return System.nanoTime() - start;
            });
    Thread.ofPlatform().daemon().start(task);
    return task;
  }

  @Test
  void oneRingsWhoHearsTheConnection() {
    Doorbell seen = Doorbell.find(aeron, bell.number());
    assertThat(seen.take()).isFalse();
    bell.arm();
    assertThat(seen.take()).isTrue();
    assertThat(seen.take()).isFalse();
    assertThat(bell.isArmed()).isFalse();
  }

  @Test
  void whoTakesTheBellWakesWhoSleepsInIt() throws Exception {
    InBell.link();
    bell.armForSleep();
    FutureTask<Long> task = sleeper();
    assertThat(Doorbell.find(aeron, bell.number()).take()).isFalse();
    assertThat(task.get(60, TimeUnit.SECONDS)).isLessThan(LONG);
    assertThat(bell.isArmed()).isFalse();
  }

  @Test
  void nobodySleepsInABellThatWasTaken() throws Exception {
    InBell.link();
    bell.armForSleep();
    assertThat(bell.take()).isFalse();
    assertThat(sleeper().get(60, TimeUnit.SECONDS)).isLessThan(LONG);
  }

  @Test
  void aSleeperIsWokenAlsoWhereTheBellWasArmedAgain() throws Exception {
    InBell.link();
    bell.armForSleep();
    FutureTask<Long> task = sleeper();
    bell.arm();
    long deadline = System.nanoTime() + LONG;
    while (!task.isDone()) {
      bell.wakeSleeper();
      assertThat(System.nanoTime()).isLessThan(deadline);
      Thread.onSpinWait();
    }
    assertThat(task.get()).isLessThan(LONG);
    assertThat(bell.take()).isTrue();
  }
}
