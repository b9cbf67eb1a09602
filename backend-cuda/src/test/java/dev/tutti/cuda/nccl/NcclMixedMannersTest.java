package dev.tutti.cuda.nccl;

import static dev.tutti.cuda.nccl.MixedRanks.LIMIT;
import static dev.tutti.cuda.nccl.MixedRanks.PREFIX;
import static dev.tutti.cuda.nccl.MixedRanks.end;
import static dev.tutti.cuda.nccl.MixedRanks.floats;
import static dev.tutti.cuda.nccl.MixedRanks.read;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.Capabilities.Feature;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.cuda.Until;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests, on a fake NCCL, what is reported if ranks create their communicators in different ways or
 * never join. Also tests that Tutti ranks that join late still form a group of Tutti ranks only.
 */
@Timeout(300)
class NcclMixedMannersTest {
  @AutoClose private final MixedRanks ranks = new MixedRanks(3);

  @Test
  void namesTheCauseWhereTheOtherRankWaitsInACommunicatorOfTheTwo() throws Exception {
    CountDownLatch named = new CountDownLatch(1);
    Future<?> foreign =
        ranks.foreign(
            0,
            2,
            rank -> {
              Communicator main = rank.main();
              ranks.store.set(PREFIX + "0:1", ranks.nccl.uniqueId());
              assertThat(named.await(4, TimeUnit.MINUTES)).isTrue();
              main.close();
            });
    Future<?> own =
        ranks.own(
            1,
            2,
            (group, device) -> {
              Tensor tensor = floats(device, 0);
              long start = System.nanoTime();
              assertThatThrownBy(() -> group.recv(tensor, 0))
                  .isInstanceOf(TuttiException.class)
                  .hasMessageContaining("rank 0 of PyTorch was given no device_id")
                  .hasMessageContaining("set TUTTI_NCCL_LAZY=1 for all ranks of Tutti");
              assertThat(System.nanoTime() - start).isLessThan(TimeUnit.SECONDS.toNanos(30));
              named.countDown();
            });
    end(own, foreign);
  }

  @Test
  void barriersRunOnTheDeviceAsThoseOfPytorchWithADeviceId() throws Exception {
    CountDownLatch looked = new CountDownLatch(1);
    Future<?> foreign = ranks.foreignUntil(looked, 0, 2);
    Future<?> own =
        ranks.own(
            1,
            2,
            (group, device) -> {
              assertThat(ranks.takeBarriers()).containsExactly(true);
              looked.countDown();
            });
    end(own, foreign);
  }

  @Test
  void withTheLazySettingBarriersRunOnTheHostAsThoseOfPytorchWithoutADeviceId() throws Exception {
    end(
        ranks.lazy(
            0, 2, (group, device) -> assertThat(ranks.takeBarriers()).containsExactly(false)));
  }

  @Test
  void aMessageThatNobodyTakesEndsAtItsDeadlineWithTheLikelyCause() throws Exception {
    CountDownLatch named = new CountDownLatch(1);
    Future<?> foreign = ranks.foreignUntil(named, 0, 2);
    Future<?> own =
        ranks.own(
            1,
            2,
            (group, device) -> {
              Tensor tensor = floats(device, 0);
              CallOptions soon = CallOptions.timeout(Duration.ofMillis(300));
              assertThatThrownBy(() -> group.recv(tensor, 0, 0, soon))
                  .isInstanceOf(TuttiException.class)
                  .hasMessageContaining(
                      "the operation did not complete in time; if the other rank is a rank")
                  .hasMessageContaining("set TUTTI_NCCL_LAZY=1");
              named.countDown();
            });
    end(own, foreign);
  }

  @Test
  void aLazyMessageEndsAtItsDeadlineWithTheLikelyCause() throws Exception {
    end(
        ranks.lazy(
            0,
            2,
            (group, device) -> {
              Tensor tensor = floats(device, 0);
              CallOptions soon = CallOptions.timeout(Duration.ofMillis(300));
              assertThatThrownBy(() -> group.send(tensor, 1, 0, soon))
                  .isInstanceOf(TuttiException.class)
                  .hasMessageContaining(
                      "the operation did not complete in time; if there are ranks of")
                  .hasMessageContaining("leave TUTTI_NCCL_LAZY unset");
            }));
  }

  @Test
  void aLazyCollectiveThatRanksDoNotComeToEndsAtItsDeadlineWithTheLikelyCause() throws Exception {
    end(
        ranks.lazy(
            1,
            2,
            (group, device) -> {
              group.setTimeout(Duration.ofSeconds(3));
              Tensor tensor = floats(device, 0);
              assertThatThrownBy(() -> group.allReduce(tensor))
                  .isInstanceOf(CollectiveTimeoutException.class)
                  .hasMessageContaining(
                      "the operation did not complete in time; if there are ranks of")
                  .hasMessageContaining("leave TUTTI_NCCL_LAZY unset");
            }));
  }

  @Test
  void ranksOfTuttiWithOtherSettingsAreRefused() throws Exception {
    Future<?> lazy = ranks.lazy(0, 2, (group, device) -> group.barrier());
    Future<?> eager = ranks.own(1, 2, (group, device) -> group.barrier());
    for (Future<?> each : List.of(lazy, eager)) {
      assertThatThrownBy(() -> each.get(2, TimeUnit.MINUTES))
          .hasStackTraceContaining("it must be the same on all ranks of Tutti");
    }
  }

  /** Makes rank 0 assume that there are PyTorch ranks, because rank 1 joins late. */
  @Test
  void ranksOfTuttiThatComeLateAreAloneNevertheless() throws Exception {
    Future<?> first =
        ranks.own(
            0,
            2,
            (group, device) -> {
              assertThat(group.capabilities().has(Feature.DETECTS_DEAD_PEERS)).isTrue();
              group.send(floats(device, 4), 1);
            });
    Until.holds("the guess", () -> ranks.store.check(List.of(PREFIX + "tutti/alone")));
    assertThat(ranks.store.get(PREFIX + "tutti/alone", LIMIT)).containsExactly('0');
    Future<?> second =
        ranks.own(
            1,
            2,
            (group, device) -> {
              Tensor tensor = floats(device, 0);
              assertThat(group.capabilities().has(Feature.DETECTS_DEAD_PEERS)).isTrue();
              group.recv(tensor, 0);
              assertThat(read(device, tensor)).containsExactly(4);
            });
    end(first, second);
    assertThat(ranks.nccl.calls("ncclCommSplit")).isGreaterThanOrEqualTo(2);
  }

  @Test
  void aRankThatLeftIsNamedByTheCollectiveThatMakesTheCommunicator() throws Exception {
    Future<?> leaver = ranks.lazy(0, 2, (group, device) -> {});
    Future<?> waiter =
        ranks.lazy(
            1,
            2,
            LIMIT,
            (group, device) -> {
              long start = System.nanoTime();
              assertThatThrownBy(() -> group.allReduce(floats(device, 1)))
                  .hasMessageContaining("rank 0 closed the group");
              assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(LIMIT);
            });
    end(waiter, leaver);
  }
}
