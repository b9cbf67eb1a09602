package dev.tutti.cuda.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.RendezvousException;
import dev.tutti.cuda.driver.FakeCudaDriver;
import dev.tutti.cuda.driver.FakeNccl;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests communicators whose other rank does not come. */
class CommunicatorTest {
  private FakeCudaDriver fake;
  private FakeNccl nccl;
  private long context;

  @BeforeEach
  void open() {
    fake = new FakeCudaDriver(1);
    nccl = new FakeNccl(fake);
    context = fake.driver().contexts().retainPrimary(0);
  }

  @AfterEach
  void nothingIsLeft() {
    assertThat(nccl.communicators()).isZero();
    fake.close();
  }

  private Communicator begin() {
    Runnable enter = () -> fake.driver().contexts().setCurrent(context);
    return Communicator.begin(nccl, enter, "rank 0", nccl.uniqueId(), 2, 0, 4);
  }

  @Test
  void anAbortEndsTheWaitForTheOtherRank() throws Exception {
    Communicator communicator = begin();
    CountDownLatch waits = new CountDownLatch(1);
    try (ExecutorService thread = Executors.newSingleThreadExecutor()) {
      Future<?> wait =
          thread.submit(
              () -> {
                waits.countDown();
                communicator.awaitRanks(System.nanoTime() + TimeUnit.MINUTES.toNanos(5));
              });
      assertThat(waits.await(20, TimeUnit.SECONDS)).isTrue();
      communicator.abort(new IllegalStateException("enough"));
      assertThatThrownBy(() -> wait.get(20, TimeUnit.SECONDS))
          .cause()
          .isInstanceOf(BackendException.class)
          .hasMessage("the group was aborted")
          .hasRootCauseMessage("enough");
    }
    communicator.close();
  }

  @Test
  void theWaitForTheOtherRankHasADeadline() {
    Communicator communicator = begin();
    assertThatThrownBy(() -> communicator.awaitRanks(System.nanoTime() + 50_000_000))
        .isInstanceOf(RendezvousException.class)
        .hasMessage("rank 0: the ranks did not all come to the communicator of NCCL in time");
    communicator.abort(new IllegalStateException("late"));
    communicator.close();
  }
}
