package dev.tutti.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(30)
class WatchdogTest {
  @Test
  void survivesWhatItWatches() {
    AtomicInteger looks = new AtomicInteger();
    Watchdog.Watched thrower =
        now -> {
          throw new AssertionError("thrown by a group");
        };
    Watchdog.Watched good =
        now -> {
          looks.incrementAndGet();
          return now + 1_000_000;
        };
    try (LocalWorld.Quiet _ = LocalWorld.quiet(Watchdog.class)) {
      Watchdog.watch(thrower);
      Watchdog.watch(good);
      LocalWorld.until("100 looks", () -> looks.get() > 100);
    } finally {
      Watchdog.unwatch(thrower);
      Watchdog.unwatch(good);
    }
    assertThat(looks.get()).isGreaterThan(100);
  }
}
