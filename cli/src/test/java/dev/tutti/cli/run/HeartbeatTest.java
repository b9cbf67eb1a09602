package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.OptionalInt;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

class HeartbeatTest {
  @Test
  void findsTheLauncherThatIsSilent() {
    try (HashStore store = new HashStore()) {
      Duration limit = Duration.ofMillis(500);
      Heartbeat zero = new Heartbeat(store, 0, 3, limit);
      Heartbeat one = new Heartbeat(store, 1, 3, Duration.ofHours(1));
      new Heartbeat(store, 2, 3, limit).beat();
      long start = System.nanoTime();
      OptionalInt silent = OptionalInt.empty();
      while (silent.isEmpty() && System.nanoTime() - start < Duration.ofMinutes(4).toNanos()) {
        assertThat(one.beat()).isEmpty();
        silent = zero.beat();
        LockSupport.parkNanos(1_000_000); // like the interval between beats
      }
      assertThat(silent).hasValue(2);
      assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(limit.toNanos());
    }
  }
}
