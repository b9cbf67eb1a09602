package dev.tutti.runtime.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.StoreSilentException;
import dev.tutti.runtime.group.StuckStore;
import dev.tutti.runtime.rendezvous.UninterruptedStore.SetUp;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests how long calls to a store may take while a group is set up. */
@Timeout(value = 2, unit = TimeUnit.MINUTES)
class UninterruptedStoreTest {
  private static final Duration ANSWER = Duration.ofMillis(70);

  private static UninterruptedStore store(Store below, Duration left) {
    return new UninterruptedStore(
        below, Time.SYSTEM, null, new SetUp("1.0", 2, Time.SYSTEM.deadline(left), ANSWER));
  }

  @Test
  void theDeadlineOfSetUpBoundsCallsThatHaveNone() {
    StuckStore server = new StuckStore();
    UninterruptedStore store = store(server.store(), Duration.ofMillis(50));
    server.stuck = true;
    try {
      assertThatThrownBy(() -> store.set("key", "value"))
          .isInstanceOf(StoreSilentException.class)
          .hasMessageStartingWith("rank 2 of group 1.0: ")
          .hasMessageEndingWith(" does not answer within 70 ms");
      assertThatThrownBy(() -> store.check(List.of("key")))
          .isInstanceOf(StoreSilentException.class);
      assertThatThrownBy(() -> store.compareSet("key", null, new byte[0]))
          .isInstanceOf(StoreSilentException.class);
    } finally {
      server.released.countDown();
    }
  }

  @Test
  void aServerHasTheTimeOfAnAnswerAfterTheDeadline() {
    StuckStore server = new StuckStore();
    UninterruptedStore store = store(server.store(), Duration.ZERO);
    server.stuck = true;
    try {
      assertThatThrownBy(() -> store.set("key", "value"))
          .isInstanceOf(StoreSilentException.class)
          .hasMessageEndingWith(" does not answer within 70 ms");
    } finally {
      server.released.countDown();
    }
  }

  @Test
  void callsAreThoseOfTheStoreBelowDuringSetUpAndAfter() {
    HashStore below = new HashStore();
    UninterruptedStore store = store(below, Duration.ofMinutes(1));
    store.set("during", "1");
    assertThat(store.add("during", 2)).isEqualTo(3);
    store.endSetUp();
    store.set("after", "4");
    assertThat(below.multiGet(List.of("during", "after"), Duration.ZERO))
        .extracting(value -> new String(value, StandardCharsets.UTF_8))
        .containsExactly("3", "4");
  }
}
