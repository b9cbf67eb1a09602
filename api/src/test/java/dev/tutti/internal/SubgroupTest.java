package dev.tutti.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.OpType;
import dev.tutti.PeerFailedException;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests waits for other ranks that go through the store. */
@Timeout(60)
class SubgroupTest {
  @Test
  void aSplitNamesTheRankThatDoesNotCome() throws Exception {
    List<Throwable> failures =
        LocalWorld.run(
            3,
            new LocalProvider(),
            group -> {
              if (group.rank() == 1) {
                LocalWorld.until("the failure", () -> group.failure().isPresent());
                return group.failure().orElseThrow();
              }
              group.setTimeout(Duration.ofMillis(300));
              return catchThrowable(() -> group.split(0, 0));
            });
    for (int rank : new int[] {0, 2}) {
      CollectiveException failure = (CollectiveException) failures.get(rank);
      assertThat(failure).hasMessageContaining("rank 1 did not come").isNotNull();
      assertThat(failure.opType()).isEqualTo(OpType.SPLIT);
      assertThat(failure.failedRank()).isEqualTo(1);
    }
    assertThat(failures).hasAtLeastOneElementOfType(CollectiveTimeoutException.class);
  }

  @Test
  void aSplitEndsWhenTheGroupFails() throws Exception {
    List<Throwable> failures =
        LocalWorld.run(
            2,
            new LocalProvider(),
            group -> {
              if (group.rank() == 1) {
                group.abort("no more groups");
                return group.failure().orElse(null);
              }
              long start = System.nanoTime();
              Throwable thrown = catchThrowable(() -> group.split(0, 0));
              assertThat(Duration.ofNanos(System.nanoTime() - start))
                  .isLessThan(Duration.ofSeconds(5));
              return thrown;
            });
    assertThat(failures.get(0))
        .isInstanceOf(PeerFailedException.class)
        .hasMessageContaining("no more groups");
  }

  @Test
  void aMonitoredBarrierEndsOnRankZeroWhenTheGroupFails() throws Exception {
    List<Throwable> failures =
        LocalWorld.run(
            2,
            new LocalProvider(),
            group -> {
              if (group.rank() == 1) {
                group.abort("no barrier");
                return group.failure().orElse(null);
              }
              long start = System.nanoTime();
              Throwable thrown =
                  catchThrowable(() -> group.monitoredBarrier(Duration.ofSeconds(15), true));
              assertThat(Duration.ofNanos(System.nanoTime() - start))
                  .isLessThan(Duration.ofSeconds(5));
              return thrown;
            });
    assertThat(failures.get(0))
        .isInstanceOf(PeerFailedException.class)
        .hasMessageContaining("no barrier");
  }
}
