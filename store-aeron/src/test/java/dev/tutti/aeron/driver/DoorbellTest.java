package dev.tutti.aeron.driver;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.aeron.InBell;
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
  private static final long LONG = TimeUnit.DAYS.toNanos(1);

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

  private FutureTask<?> sleeper() {
    FutureTask<?> task = new FutureTask<>(() -> bell.sleep(new Futex(), LONG), null);
    Thread.ofPlatform().daemon().start(task);
    return task;
  }

  @Test
  void onlyOneTakesAnArmedBell() {
    Doorbell seen = Doorbell.find(aeron, bell.number());
    assertThat(seen.tookArmed()).isFalse();
    bell.arm();
    assertThat(bell.isArmed()).isTrue();
    assertThat(seen.tookArmed()).isTrue();
    assertThat(seen.tookArmed()).isFalse();
    assertThat(bell.isArmed()).isFalse();
  }

  @Test
  void aBellSaysWhetherItsOwnerWakesOthers() {
    Doorbell seen = Doorbell.find(aeron, bell.number());
    assertThat(seen.canWake()).isFalse();
    bell.disarm();
    assertThat(seen.canWake()).isTrue();
    bell.arm();
    assertThat(seen.canWake()).isTrue();
  }

  @Test
  void ringingTheBellWakesTheThreadThatSleepsInIt() throws Exception {
    InBell.link();
    bell.arm();
    FutureTask<?> task = sleeper();
    Doorbell.find(aeron, bell.number()).ring();
    task.get();
    assertThat(bell.isArmed()).isFalse();
  }

  @Test
  void nobodySleepsInABellThatWasRung() throws Exception {
    InBell.link();
    bell.arm();
    bell.ring();
    sleeper().get();
  }
}
