package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

class HeartbeatTest {
  @Test
  void findsTheLauncherThatIsSilent() {
    try (HashStore store = new HashStore()) {
      Duration limit = Duration.ofMillis(500);
      List<String> names = List.of("0", "1", "2");
      Heartbeat zero = new Heartbeat(store, "0", limit, System::nanoTime);
      Heartbeat one = new Heartbeat(store, "1", Duration.ofHours(1), System::nanoTime);
      boolean _ = new Heartbeat(store, "2", limit, System::nanoTime).beat(names).isPresent();
      long start = System.nanoTime();
      Optional<String> silent = Optional.empty();
      while (silent.isEmpty() && System.nanoTime() - start < Duration.ofMinutes(4).toNanos()) {
        assertThat(one.beat(names)).isEmpty();
        silent = zero.beat(names);
        LockSupport.parkNanos(1_000_000); // like the interval between beats
      }
      assertThat(silent).hasValue("2");
      assertThat(zero.isAlive("1")).isTrue();
      assertThat(zero.isAlive("2")).isFalse();
      assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(limit.toNanos());
    }
  }
}
