package dev.tutti.cuda.nccl;

import static dev.tutti.cuda.nccl.MixedRanks.LIMIT;
import static dev.tutti.cuda.nccl.MixedRanks.end;
import static dev.tutti.cuda.nccl.MixedRanks.floats;
import static dev.tutti.cuda.nccl.MixedRanks.read;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.Tensor;
import dev.tutti.Work;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests groups with PyTorch ranks whose store is gone or does not respond. */
@Timeout(300)
@Order(1)
class NcclMixedStoreTest {
  @AutoClose private final MixedRanks ranks = new MixedRanks(2);

  /** A PyTorch rank that is killed may have hosted the store. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whatNcclSaysIsHeardWithoutTheStore(boolean lazy) throws Exception {
    hearsNccl(lazy, ranks.store::close);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whatNcclSaysIsHeardWhileTheStoreStalls(boolean lazy) throws Exception {
    hearsNccl(lazy, ranks.stall::begin);
  }

  private void hearsNccl(boolean lazy, Runnable harm) throws Exception {
    CountDownLatch connected = new CountDownLatch(2);
    CountDownLatch over = new CountDownLatch(1);
    Future<?> foreign =
        ranks.foreign(
            0,
            2,
            rank -> {
              Communicator own = lazy ? rank.pair(1) : rank.main();
              rank.send(own, 1, rank.floats(5));
              connected.countDown();
              assertThat(over.await(4, TimeUnit.MINUTES)).isTrue();
              own.close();
            });
    MixedRanks.Own receives =
        (group, device) -> {
          Tensor tensor = floats(device, 0);
          group.recv(tensor, 0);
          assertThat(read(device, tensor)).containsExactly(5);
          Work work = group.recv(tensor, 0, 0, CallOptions.ASYNC);
          connected.countDown();
          assertThatThrownBy(() -> work.await(LIMIT)).hasMessageContaining("played failure");
          ranks.stall.end();
          over.countDown();
        };
    Duration limit = LIMIT.plus(LIMIT);
    Future<?> own = lazy ? ranks.lazy(1, 2, limit, receives) : ranks.own(1, 2, limit, receives);
    assertThat(connected.await(2, TimeUnit.MINUTES)).isTrue();
    harm.run();
    ranks.nccl.failAll(6);
    end(own, foreign);
  }

  @Test
  void aStoreThatStallsDoesNotKeepACloseFromReturning() throws Exception {
    CountDownLatch over = new CountDownLatch(1);
    Future<?> foreign = ranks.foreignUntil(over, 0, 2);
    Future<?> own =
        ranks.own(
            1,
            2,
            (group, device) -> {
              ranks.stall.begin();
              over.countDown();
              long start = System.nanoTime();
              group.close();
              assertThat(Duration.ofNanos(System.nanoTime() - start))
                  .isLessThan(Duration.ofSeconds(60));
              ranks.stall.end();
            });
    end(own, foreign);
  }
}
