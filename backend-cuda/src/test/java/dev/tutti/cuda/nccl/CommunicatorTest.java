package dev.tutti.cuda.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.RendezvousException;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.driver.DeviceContext;
import dev.tutti.cuda.driver.FakeCudaDriver;
import dev.tutti.cuda.driver.FakeNccl;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests communicators that wait for their other rank. */
@Isolated("counts the threads of the process")
class CommunicatorTest {
  private FakeCudaDriver fake;
  private FakeNccl nccl;
  private final long[] cells = new long[2];
  private final long[] streams = new long[2];
  private DeviceContext context;

  @BeforeEach
  void open() {
    fake = new FakeCudaDriver(1);
    nccl = new FakeNccl(fake);
    context = new DeviceContext(fake.driver(), 0);
    enter();
    for (int rank = 0; rank < 2; rank++) {
      cells[rank] = fake.driver().memory().allocate(4);
      streams[rank] = fake.driver().streams().create(0);
    }
  }

  @AfterEach
  void nothingIsLeft() {
    awaitEnds();
    enter();
    for (int rank = 0; rank < 2; rank++) {
      fake.driver().streams().destroy(streams[rank]);
      fake.driver().memory().free(cells[rank]);
    }
    fake.close();
  }

  /** Waits for the ends that a close begins, and for which it waits a second at most. */
  private void awaitEnds() {
    Until.holds("the end of the communicators", () -> nccl.communicators() == 0);
  }

  private Communicator begin() {
    return begin(nccl.uniqueId(), 0);
  }

  private Communicator begin(byte[] id, int rank) {
    return Communicator.begin(nccl, context, "rank " + rank, id, 2, rank, true);
  }

  private void enter() {
    context.enter();
  }

  private static long soon() {
    return System.nanoTime() + Until.LONG.toNanos();
  }

  private interface Body {
    void run(Communicator communicator, int rank) throws Exception;
  }

  /**
   * Runs both ranks, each on a thread, with their communicators already created, and then closes
   * them.
   */
  private void both(Body body) throws Exception {
    byte[] id = nccl.uniqueId();
    List<Communicator> made = List.of(begin(id, 0), begin(id, 1));
    try (ExecutorService threads = Executors.newCachedThreadPool()) {
      List<Future<?>> ends = new ArrayList<>();
      for (int rank = 0; rank < 2; rank++) {
        int own = rank;
        ends.add(
            threads.submit(
                () -> {
                  made.get(own).awaitRanks(soon());
                  body.run(made.get(own), own);
                  return null;
                }));
      }
      for (Future<?> end : ends) {
        end.get(4, TimeUnit.MINUTES);
      }
    }
    made.forEach(Communicator::close);
  }

  private void sum(Communicator communicator, int rank, long deadline, Runnable look) {
    enter();
    communicator.runGroup(
        "a sum",
        deadline,
        look,
        (calls, handle) ->
            calls.allReduce(cells[rank], cells[rank], 1, 2, 0, handle, streams[rank]));
    fake.driver().streams().synchronize(streams[rank]);
  }

  @Test
  void callsThatBlockAreDoneWhenTheyReturn() throws Exception {
    both(
        (communicator, rank) -> {
          communicator.block(rank, soon(), () -> {});
          sum(communicator, rank, soon(), () -> {});
        });
    awaitEnds();
    assertThat(nccl.calls("ncclCommSplit")).isEqualTo(2);
    assertThat(nccl.calls("ncclGroupEnd")).isEqualTo(2);
    assertThat(nccl.calls("ncclCommFinalize")).isEqualTo(4);
  }

  @Test
  void callsDoNotBlockThatNobodyCouldEnd() throws Exception {
    nccl.shareNoAborts();
    both(
        (communicator, rank) -> {
          communicator.block(rank, soon(), () -> {});
          sum(communicator, rank, soon(), () -> {});
        });
    awaitEnds();
    assertThat(nccl.calls("ncclCommSplit")).isZero();
    assertThat(nccl.calls("ncclCommFinalize")).isEqualTo(2);
  }

  @Test
  void whoSplitsAloneGivesUpAtTheDeadline() throws Exception {
    both(
        (communicator, rank) -> {
          if (rank == 0) {
            assertThatThrownBy(
                    () -> communicator.block(rank, System.nanoTime() + 50_000_000, () -> {}))
                .isInstanceOf(RendezvousException.class)
                .hasMessageContaining("not all ranks came to a blocking NCCL communicator");
            communicator.abort(new IllegalStateException("late"));
          }
        });
  }

  @Test
  void anAbortEndsACallThatBlocks() throws Exception {
    nccl.holdOn("ncclGroupEnd", new CountDownLatch(1));
    CountDownLatch called = new CountDownLatch(1);
    both(
        (communicator, rank) -> {
          communicator.block(rank, soon(), () -> {});
          try (ExecutorService thread = Executors.newSingleThreadExecutor()) {
            Future<?> call = thread.submit(() -> sum(communicator, rank, soon(), () -> {}));
            Until.holds(
                "both calls",
                () -> {
                  if (nccl.waiting("ncclGroupEnd") == 2) {
                    called.countDown();
                  }
                  return called.getCount() == 0;
                });
            communicator.abort(new IllegalStateException("enough"));
            assertThatThrownBy(() -> call.get(60, TimeUnit.SECONDS))
                .cause()
                .isInstanceOf(NcclException.class)
                .hasMessageContaining("a sum failed: result 3");
          }
        });
  }

  @Test
  void aCallThatBlocksIsLookedAfter() throws Exception {
    nccl.holdOn("ncclGroupEnd", new CountDownLatch(1));
    both(
        (communicator, rank) -> {
          communicator.block(rank, soon(), () -> {});
          Runnable look =
              () -> {
                throw new BackendException("the store is gone");
              };
          if (rank == 0) {
            assertThatThrownBy(() -> sum(communicator, rank, soon(), look))
                .hasMessage("the store is gone");
          } else {
            assertThatThrownBy(
                    () -> sum(communicator, rank, System.nanoTime() + 50_000_000, () -> {}))
                .isInstanceOf(NcclException.class)
                .hasMessageContaining("a sum did not complete in time");
          }
        });
  }

  /** Frees nothing that is shared with a communicator that another thread is aborting. */
  @Test
  void anAbortWaitsForTheOneThatADeadlineBegan() throws Exception {
    CountDownLatch held = new CountDownLatch(1);
    nccl.holdOn("ncclGroupEnd", new CountDownLatch(1));
    nccl.holdOn("ncclCommAbort", held);
    both(
        (communicator, rank) -> {
          communicator.block(rank, soon(), () -> {});
          if (rank == 0) {
            long deadline = System.nanoTime() + 50_000_000;
            assertThatThrownBy(() -> sum(communicator, rank, deadline, () -> {}))
                .hasMessageContaining("a sum did not complete in time");
            Until.holds("the first abort", () -> nccl.calls("ncclCommAbort") == 1);
            communicator.abort(new IllegalStateException("enough"));
            Until.holds(
                "the second abort",
                () -> blocked("tutti-nccl-abort") >= 1 || nccl.calls("ncclCommAbort") == 2);
            assertThat(nccl.calls("ncclCommAbort")).isOne();
            held.countDown();
          }
        });
    awaitEnds();
    assertThat(nccl.calls("ncclCommAbort")).isEqualTo(2);
  }

  /** Returns how many threads with a name wait for a monitor. */
  private static long blocked(String name) {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals(name))
        .filter(thread -> thread.getState() == Thread.State.BLOCKED)
        .count();
  }

  /** Lets a close be forced to its end while the abort that forced it continues. */
  @Test
  @Tag("full")
  void aCloseWaitsForTheAbortThatItsDeadlineBegan() throws Exception {
    CountDownLatch held = new CountDownLatch(1);
    nccl.holdOn("ncclCommFinalize", new CountDownLatch(1));
    nccl.holdOn("ncclCommAbort", held);
    both(
        (communicator, rank) -> {
          communicator.block(rank, soon(), () -> {});
          communicator.beginClose();
          if (rank == 0) {
            Until.holds("both aborts", () -> nccl.calls("ncclCommAbort") >= 2);
            Until.holds(
                "both closes",
                () -> blocked("tutti-nccl-close") >= 2 || nccl.calls("ncclCommAbort") > 2);
            assertThat(nccl.calls("ncclCommAbort")).isEqualTo(2);
            held.countDown();
          }
        });
    awaitEnds();
    assertThat(nccl.calls("ncclCommAbort")).isEqualTo(4);
  }

  /** Holds what NCCL holds until the ranks of the host that are other processes close, too. */
  @Test
  void aCloseWhoseDataHasLeftDoesNotWaitForPeersThatStay() throws Exception {
    CountDownLatch held = new CountDownLatch(1);
    CountDownLatch closed = new CountDownLatch(2);
    nccl.holdOn("ncclCommDestroy", held);
    both(
        (communicator, rank) -> {
          communicator.close(System.nanoTime() + TimeUnit.MINUTES.toNanos(30));
          closed.countDown();
          assertThat(closed.await(60, TimeUnit.SECONDS)).isTrue();
          Until.holds("both calls", () -> nccl.calls("ncclCommDestroy") == 2);
          assertThat(nccl.communicators()).isEqualTo(2);
        });
    held.countDown();
    awaitEnds();
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
      assertThat(waits.await(60, TimeUnit.SECONDS)).isTrue();
      communicator.abort(new IllegalStateException("enough"));
      assertThatThrownBy(() -> wait.get(60, TimeUnit.SECONDS))
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
        .hasMessage("rank 0: not all ranks came to the NCCL communicator in time");
    communicator.abort(new IllegalStateException("late"));
    communicator.close();
  }
}
