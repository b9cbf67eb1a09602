package dev.tutti.cli.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Settings;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class StoreBenchTest {
  private static final Duration TIME = Duration.ofMillis(50);

  @ParameterizedTest
  @ValueSource(ints = {1, 3, 16, 1 << 20})
  void callsForAllTheTimeHoweverManyTimesItKeeps(int most) {
    try (HashStore store = new HashStore(Duration.ofSeconds(10))) {
      StoreBench.Calls calls = StoreBench.calls(store, "add", "key", TIME.toNanos(), most);
      assertThat(calls.end() - calls.start()).isGreaterThanOrEqualTo(TIME.toNanos());
      assertThat(store.add("key", 0)).isEqualTo(calls.count());
      assertThat(calls.nanos()).hasSize((int) Math.min(most, calls.count()));
      assertThat(Arrays.stream(calls.nanos()).sum()).isBetween(0L, calls.end() - calls.start());
    }
  }

  @Test
  void dividesTheCallsByTheTimeFromTheFirstStartToTheLastEnd() {
    List<StoreBench.Calls> all =
        List.of(
            new StoreBench.Calls(new long[0], 10, 500_000_000, 1_500_000_000),
            new StoreBench.Calls(new long[0], 20, 0, 1_000_000_000));
    assertThat(StoreBench.perSecond(all)).isEqualTo(20);
  }

  @Test
  @Timeout(300)
  void saysWhichFailureOfAClientWasTheFirst() {
    AtomicInteger opened = new AtomicInteger();
    StoreBench bench =
        new StoreBench("hash", Settings.ofEnvironment(Map.of()), TIME, true, System.out);
    try (HashStore store = new HashStore(Duration.ofSeconds(10))) {
      assertThatThrownBy(
              () ->
                  bench.measure(
                      () -> {
                        if (opened.incrementAndGet() == 3) {
                          throw new IllegalStateException("no room");
                        }
                        return store.duplicate();
                      },
                      "get",
                      3))
          .isInstanceOf(LaunchException.class)
          .hasMessage("a client failed: java.lang.IllegalStateException: no room");
    }
  }
}
