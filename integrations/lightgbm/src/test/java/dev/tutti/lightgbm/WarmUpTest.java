package dev.tutti.lightgbm;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.GroupListener;
import dev.tutti.ProcessGroup;
import dev.tutti.Registration;
import dev.tutti.Tensor;
import dev.tutti.fake.ThreadedWorld;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class WarmUpTest {
  private static final int RANKS = 3;

  /** A clock whose reading may depend on how many collectives the rank has begun. */
  private interface Clock {
    long nanos(int rank, int calls);
  }

  /** Counts the collectives of each rank, and checks that the next one is right. */
  private static void assertCalls(int expected, Clock clock) {
    ThreadedWorld.of(RANKS)
        .withTimeout(Duration.ofMinutes(4))
        .run(
            group -> {
              AtomicInteger calls = new AtomicInteger();
              LongSupplier nanos = () -> clock.nanos(group.rank(), calls.get());
              try (Registration _ = group.addListener(counting(calls));
                  Arena arena = Arena.ofConfined()) {
                NetworkFunctions functions = new NetworkFunctions(group, () -> {});
                WarmUp.run(functions, group.size(), arena, nanos);
                assertThat(functions.failure()).isNull();
              }
              assertThat(calls).hasValue(expected);
              assertSum(group);
            });
  }

  private static GroupListener counting(AtomicInteger calls) {
    return new GroupListener() {
      @Override
      public void before(OpEvent event) {
        calls.incrementAndGet();
      }
    };
  }

  private static void assertSum(ProcessGroup group) {
    Tensor ones = Tensor.of(1f);
    group.allReduce(ones);
    assertThat(ones.getFloat(0)).isEqualTo(RANKS);
  }

  @Test
  void allCallsAreMade() {
    assertCalls(1 + 2 * WarmUp.CALLS, (rank, calls) -> 0);
  }

  @Test
  void allRanksStopWhenOneHasTakenTooLong() {
    assertCalls(21, (rank, calls) -> rank == 1 && calls >= 20 ? WarmUp.MOST_NANOS : 0);
  }

  @Test
  void theTimeBeforeAllHaveComeDoesNotCount() {
    assertCalls(1 + 2 * WarmUp.CALLS, (rank, calls) -> calls == 0 ? -WarmUp.MOST_NANOS : 0);
  }
}
