package dev.tutti.fake;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CollectiveTimeoutException;
import dev.tutti.DType;
import dev.tutti.GroupClosedException;
import dev.tutti.OpType;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.spi.PeerMismatchException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class ThreadedSymmetricMemoryTest {
  private static final Duration LONG = Duration.ofSeconds(60);

  private static SymmetricMemory allocate(RawWorld.Rank rank, long bytes) throws Exception {
    return rank.backend.allocateSymmetric(rank.op(OpType.ALLOCATE_SYMMETRIC), bytes);
  }

  @Test
  void ranksWriteIntoEachOthersBuffers() {
    RawWorld.run(
        4,
        rank -> {
          try (SymmetricMemory memory = allocate(rank, 32)) {
            assertThat(memory.rank()).isEqualTo(rank.rank);
            assertThat(memory.size()).isEqualTo(4);
            assertThat(memory.bufferByteSize()).isEqualTo(32);
            for (int round = 0; round < 50; round++) {
              for (int peer = 0; peer < 4; peer++) {
                memory
                    .buffer(peer, DType.INT64, 8L * rank.rank, 1)
                    .setLong(0, 1000L * round + 10L * rank.rank + peer);
              }
              memory.barrier(round % memory.channels(), LONG);
              Tensor own = memory.buffer(rank.rank, DType.INT64, 0, 4);
              for (int peer = 0; peer < 4; peer++) {
                assertThat(own.getLong(peer)).isEqualTo(1000L * round + 10L * peer + rank.rank);
              }
              memory.barrier(0, LONG);
            }
          }
        });
  }

  @Test
  void anInterruptOfRankZeroTakesNoMemoryAway() {
    AtomicReference<Thread> other = new AtomicReference<>();
    RawWorld.run(
        2,
        rank -> {
          if (rank.rank == 0) {
            // It then waits for no other rank, so an interrupt has nothing to end.
            awaitArrival(other);
            Thread.currentThread().interrupt();
          } else {
            other.set(Thread.currentThread());
          }
          try (SymmetricMemory memory = allocate(rank, 8)) {
            assertThat(Thread.interrupted()).isEqualTo(rank.rank == 0);
            memory.barrier(0, LONG);
          }
        });
  }

  /** Waits until a thread is waiting for the others in a collective. */
  private static void awaitArrival(AtomicReference<Thread> other) {
    long deadline = System.nanoTime() + LONG.toNanos();
    while (!isInCollective(other.get())) {
      assertThat(System.nanoTime() - deadline).as("nanoseconds after the deadline").isNegative();
      LockSupport.parkNanos(100_000);
    }
  }

  private static boolean isInCollective(@Nullable Thread thread) {
    return thread != null
        && thread.getState() == Thread.State.TIMED_WAITING
        && Arrays.stream(thread.getStackTrace())
            .anyMatch(frame -> frame.getMethodName().equals("awaitStage"));
  }

  @Test
  void signalsCarryDataOneAtATime() {
    RawWorld.run(
        2,
        rank -> {
          try (SymmetricMemory memory = allocate(rank, 8)) {
            Tensor shared = memory.buffer(1, DType.INT64, 0, 1);
            for (int i = 1; i <= 200; i++) {
              if (rank.rank == 0) {
                shared.setLong(0, (long) i);
                memory.putSignal(1, 3, LONG);
                memory.waitSignal(1, 3, LONG);
              } else {
                memory.waitSignal(0, 3, LONG);
                assertThat(shared.getLong(0)).isEqualTo(i);
                memory.putSignal(0, 3, LONG);
              }
            }
          }
        });
  }

  @Test
  void waitsEndAtTheirDeadlines() {
    Duration brief = Duration.ofMillis(50);
    RawWorld.run(
        2,
        rank -> {
          try (SymmetricMemory memory = allocate(rank, 0)) {
            if (rank.rank == 0) {
              assertThatThrownBy(() -> memory.barrier(1, brief))
                  .isInstanceOf(CollectiveTimeoutException.class)
                  .hasMessageContaining("barrier on channel 1 of symmetric memory");
              assertThatThrownBy(() -> memory.waitSignal(1, 2, brief))
                  .isInstanceOf(CollectiveTimeoutException.class)
                  .hasMessageContaining("peer rank 1");
              memory.putSignal(1, 2, brief);
              assertThatThrownBy(() -> memory.putSignal(1, 2, brief))
                  .isInstanceOf(CollectiveTimeoutException.class);
            }
            rank.backend.barrier(rank.op(OpType.BARRIER));
            // The barrier that timed out does not count.
            memory.barrier(1, LONG);
          }
        });
  }

  @Test
  void argumentsAreChecked() {
    RawWorld.run(
        2,
        rank -> {
          SymmetricMemory memory = allocate(rank, 16);
          assertThatThrownBy(() -> memory.buffer(2, DType.INT8, 0, 1))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessage("rank 2 is not in [0, 2)");
          assertThatThrownBy(() -> memory.buffer(0, DType.INT32, 2, 1))
              .isInstanceOf(IllegalArgumentException.class);
          assertThatThrownBy(() -> memory.buffer(0, DType.INT32, 4, 4))
              .isInstanceOf(IndexOutOfBoundsException.class)
              .hasMessage("requested 16 bytes at 4 exceed the allocated 16");
          assertThatThrownBy(() -> memory.buffer(0, DType.INT32, -4, 1))
              .isInstanceOf(IndexOutOfBoundsException.class);
          assertThatThrownBy(() -> memory.barrier(memory.channels(), LONG))
              .isInstanceOf(IllegalArgumentException.class);
          rank.backend.barrier(rank.op(OpType.BARRIER));
          memory.close();
          memory.close();
          assertThatThrownBy(() -> memory.buffer(0, DType.INT8, 0, 1))
              .isInstanceOf(GroupClosedException.class);
        });
  }

  @Test
  void sizesMustBeEqual() {
    List<Throwable> failures =
        RawWorld.failures(2, new ThreadedProvider(), rank -> allocate(rank, 8 + rank.rank));
    assertThat(failures)
        .allSatisfy(
            failure ->
                assertThat(failure)
                    .isInstanceOf(PeerMismatchException.class)
                    .hasMessageContaining("allocateSymmetric #1 of 8 bytes")
                    .hasMessageContaining("allocateSymmetric #1 of 9 bytes"));
  }

  @Test
  void abortEndsWaits() {
    CountDownLatch allocated = new CountDownLatch(2);
    List<Throwable> failures =
        RawWorld.failures(
            2,
            new ThreadedProvider(),
            rank -> {
              SymmetricMemory memory = allocate(rank, 8);
              allocated.countDown();
              assertThat(allocated.await(60, TimeUnit.SECONDS)).isTrue();
              if (rank.rank == 0) {
                memory.waitSignal(1, 0, LONG);
              } else {
                rank.backend.abort(new IllegalStateException("over"));
              }
            });
    assertThat(failures.get(0))
        .isInstanceOf(TuttiException.class)
        .hasMessage("the group of this symmetric memory failed")
        .hasRootCauseMessage("over");
  }

  @Test
  void closingTheBackendFreesTheMemory() {
    ConcurrentHashMap<Integer, Tensor> views = new ConcurrentHashMap<>();
    RawWorld.run(2, rank -> views.put(rank.rank, allocate(rank, 8).buffer(0, DType.INT64, 0, 1)));
    assertThat(views.values())
        .hasSize(2)
        .allSatisfy(
            view ->
                assertThatThrownBy(() -> view.getLong(0))
                    .isInstanceOf(IllegalStateException.class));
  }

  @Test
  void viewsOfARankThatClosedThrow() {
    RawWorld.run(
        2,
        rank -> {
          SymmetricMemory memory = allocate(rank, 8);
          Tensor view = memory.buffer(0, DType.INT64, 0, 1);
          rank.backend.barrier(rank.op(OpType.BARRIER));
          if (rank.rank == 0) {
            memory.close();
            assertThatThrownBy(() -> view.getLong(0)).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> view.setLong(0, 5L)).isInstanceOf(IllegalStateException.class);
          }
          rank.backend.barrier(rank.op(OpType.BARRIER));
          if (rank.rank == 1) {
            view.setLong(0, 6L);
            assertThat(memory.buffer(0, DType.INT64, 0, 1).getLong(0)).isEqualTo(6);
            memory.close();
            assertThatThrownBy(() -> view.getLong(0)).isInstanceOf(IllegalStateException.class);
          }
        });
  }
}
