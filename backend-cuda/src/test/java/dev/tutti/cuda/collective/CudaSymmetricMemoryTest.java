package dev.tutti.cuda.collective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.DType;
import dev.tutti.GroupClosedException;
import dev.tutti.ProcessGroup;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.OperationChecks;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.access.StreamReserve;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class CudaSymmetricMemoryTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final Duration BRIEF = Duration.ofMillis(60);

  private final FakeMachine machine = new FakeMachine(3);
  private final CudaRanks ranks = new CudaRanks(machine.cuda);

  @AfterEach
  void nothingIsLeft() {
    machine.close();
  }

  /** Waits for the other ranks without using the device. */
  private static void meet(ProcessGroup group, String where) {
    group.store().barrier(where, group.size(), LONG);
  }

  private static void write(CudaDevice device, SymmetricMemory memory, int rank, long value) {
    device.tensors().copyFromHost(memory.buffer(rank, DType.INT64, 8, 1), Tensor.of(value));
  }

  private static long[] read(CudaDevice device, SymmetricMemory memory, int rank) {
    return device.tensors().toHost(memory.buffer(rank, DType.INT64, 0, 2)).toLongArray();
  }

  private void roundTrip(CudaRanks world, int size) throws Exception {
    world.run(
        size,
        (group, device) -> {
          int next = (group.rank() + 1) % size;
          int previous = (group.rank() + size - 1) % size;
          try (SymmetricMemory memory = group.allocateSymmetric(16)) {
            assertThat(memory.device()).isEqualTo(device.device());
            assertThat(read(device, memory, group.rank())).containsExactly(0, 0);
            meet(group, "zeros");
            for (int i = 1; i <= 10; i++) {
              write(device, memory, next, 100 * i + group.rank());
              if (i % 2 == 0) {
                memory.barrier(i % 3, LONG);
              } else {
                memory.putSignal(next, 1, LONG);
                memory.waitSignal(previous, 1, LONG);
              }
              assertThat(read(device, memory, group.rank())).containsExactly(0, 100 * i + previous);
              memory.barrier(2, LONG);
            }
          }
        });
  }

  @Test
  void whatOneRankWritesTheOtherReads() throws Exception {
    for (int size = 1; size <= 3; size++) {
      roundTrip(ranks, size);
    }
  }

  /**
   * All ranks have their tensors in one memory, at different offsets; then rank 2 has its tensor
   * elsewhere.
   */
  @Test
  void resultsOfLargeReductionsGoStraightIntoSharedMemory() throws Exception {
    new CudaRanks(machine.cuda)
        .with("TUTTI_X_CUDA_ONE_SHOT_BYTES", "0")
        .with("TUTTI_X_CUDA_TWO_SHOT_BYTES", "0")
        .run(
            3,
            (group, device) -> {
              long[] data = new long[100];
              try (SymmetricMemory other = group.allocateSymmetric(64);
                  SymmetricMemory memory = group.allocateSymmetric(2048)) {
                assertThat(other.bufferByteSize()).isEqualTo(64);
                for (int ordinary : new int[] {-1, 2}) {
                  Tensor tensor =
                      group.rank() == ordinary
                          ? device.tensors().allocate(DType.INT64, 100)
                          : memory.buffer(group.rank(), DType.INT64, 16L * group.rank(), 100);
                  for (int i = 0; i < data.length; i++) {
                    data[i] = i * (1L + group.rank());
                  }
                  device.tensors().copyFromHost(tensor, Tensor.of(data));
                  long before = machine.directParts();
                  meet(group, "filled" + ordinary);
                  group.allReduce(tensor);
                  long[] sums = device.tensors().toHost(tensor).toLongArray();
                  meet(group, "reduced" + ordinary);
                  assertThat(machine.directParts() - before).isEqualTo(ordinary < 0 ? 6 : 2);
                  for (int i = 0; i < sums.length; i++) {
                    assertThat(sums[i]).isEqualTo(6L * i);
                  }
                  meet(group, "checked" + ordinary);
                }
              }
            });
  }

  @Test
  void ranksOfOneDeviceShareToo() throws Exception {
    roundTrip(new CudaRanks(machine.cuda).onOneDevice(), 2);
  }

  @Test
  void legacyHandlesShareToo() throws Exception {
    roundTrip(new CudaRanks(machine.cuda).with("TUTTI_CUDA_SHARING", "ipc"), 2);
  }

  @Test
  void waitsEndAtTheirDeadlinesAndCountForNothing() throws Exception {
    ranks.run(
        2,
        (group, device) -> {
          try (SymmetricMemory memory = group.allocateSymmetric(16)) {
            if (group.rank() == 0) {
              assertThatThrownBy(() -> memory.barrier(1, BRIEF))
                  .isInstanceOf(CollectiveTimeoutException.class)
                  .hasMessageContaining("the barrier on channel 1 timed out waiting for rank 1");
              assertThatThrownBy(() -> memory.waitSignal(1, 2, BRIEF))
                  .isInstanceOfSatisfying(
                      CollectiveTimeoutException.class,
                      e -> assertThat(e.info().peer()).hasValue(1));
              memory.putSignal(1, 2, LONG);
              assertThatThrownBy(() -> memory.putSignal(1, 2, BRIEF))
                  .isInstanceOf(CollectiveTimeoutException.class);
            }
            meet(group, "deadlines");
            for (int i = 1; i < 4; i++) {
              write(device, memory, 1 - group.rank(), i);
              memory.barrier(1, LONG);
              assertThat(read(device, memory, group.rank())).containsExactly(0, i);
              memory.barrier(3, LONG);
            }
            if (group.rank() == 1) {
              memory.waitSignal(0, 2, LONG);
              assertThatThrownBy(() -> memory.waitSignal(0, 2, BRIEF))
                  .isInstanceOf(CollectiveTimeoutException.class);
            }
            meet(group, "end");
          }
          assertThat(group.failure()).isEmpty();
        });
  }

  @Test
  void theFirstWaitOfAMemoryMakesNoStream() throws Exception {
    ranks.run(
        2,
        (group, device) -> {
          List<SymmetricMemory> memories = new ArrayList<>();
          for (int i = 0; i < StreamReserve.FIRST; i++) {
            memories.add(group.allocateSymmetric(8));
          }
          meet(group, "made");
          machine.fake.clearCalls();
          memories.forEach(memory -> memory.barrier(3, LONG));
          assertThat(machine.fake.calls("cuStreamCreateWithPriority")).isEmpty();
          meet(group, "looked");
          memories.forEach(SymmetricMemory::close);
        });
  }

  @Test
  void closeEndsWaitsAndViews() throws Exception {
    ranks.run(
        2,
        (group, device) -> {
          SymmetricMemory memory = group.allocateSymmetric(16);
          Tensor view = memory.buffer(0, DType.INT64, 0, 1);
          CompletableFuture<Void> waiting =
              CompletableFuture.runAsync(() -> memory.waitSignal(1 - group.rank(), 0, LONG));
          Until.holds("the wait", () -> waits() > 0);
          memory.close();
          memory.close();
          assertThatThrownBy(() -> waiting.get(60, TimeUnit.SECONDS))
              .isInstanceOf(ExecutionException.class)
              .cause()
              .isInstanceOf(GroupClosedException.class)
              .hasMessage("symmetric memory of rank " + group.rank() + " is closed");
          Until.holds("the end", () -> !view.segment().scope().isAlive());
          assertThatThrownBy(() -> memory.buffer(0, DType.INT8, 0, 1))
              .isInstanceOf(GroupClosedException.class);
          meet(group, "closed");
        });
  }

  @Test
  void deadlinesAndCloseEndWaitsBehindAStreamThatIsHeld() throws Exception {
    ranks.run(
        2,
        (group, device) -> {
          SymmetricMemory memory = group.allocateSymmetric(16);
          if (group.rank() == 0) {
            CudaStream held = device.currentStream();
            CountDownLatch latch = machine.hold(held);
            try {
              assertThatThrownBy(() -> memory.waitSignal(1, 0, BRIEF))
                  .isInstanceOf(CollectiveTimeoutException.class)
                  .hasMessageContaining("no signal from rank 1 on channel 0");
              assertThatThrownBy(() -> memory.putSignal(1, 0, BRIEF))
                  .isInstanceOf(CollectiveTimeoutException.class);
              CountDownLatch begun = new CountDownLatch(1);
              CompletableFuture<Void> waiting =
                  CompletableFuture.runAsync(
                      () -> {
                        try (CudaStream.Scope _ = held.use()) {
                          begun.countDown();
                          memory.barrier(1, LONG);
                        }
                      });
              assertThat(begun.await(60, TimeUnit.SECONDS)).isTrue();
              memory.close();
              assertThatThrownBy(() -> waiting.get(60, TimeUnit.SECONDS))
                  .hasCauseInstanceOf(GroupClosedException.class)
                  .hasMessageContaining("is closed");
              assertThat(waits()).isZero();
            } finally {
              latch.countDown();
            }
          }
          meet(group, "ended");
          memory.close();
        });
  }

  private long waits() {
    return machine.fake.calls("cuLaunchKernel").stream()
        .filter(call -> call.contains("tutti_wait_signal"))
        .count();
  }

  @Test
  void anAbortEndsWaits() throws Exception {
    CountDownLatch allocated = new CountDownLatch(2);
    ranks.run(
        2,
        (group, device) -> {
          SymmetricMemory memory = group.allocateSymmetric(16);
          // The abort would also end the allocation of a rank that has not left it yet.
          allocated.countDown();
          assertThat(allocated.await(60, TimeUnit.SECONDS)).isTrue();
          if (group.rank() == 0) {
            group.abort("enough");
          } else {
            assertThatThrownBy(() -> memory.waitSignal(0, 0, LONG))
                .isInstanceOf(TuttiException.class)
                .isNotInstanceOf(CollectiveTimeoutException.class);
          }
        });
  }

  @Test
  void onesCloseLeavesTheOthersTheirs() throws Exception {
    ranks.run(
        2,
        (group, device) -> {
          SymmetricMemory memory = group.allocateSymmetric(16);
          write(device, memory, 1 - group.rank(), 7);
          memory.barrier(0, LONG);
          meet(group, "written");
          if (group.rank() == 0) {
            memory.close();
          }
          meet(group, "closed");
          if (group.rank() == 1) {
            assertThat(read(device, memory, 0)).containsExactly(0, 7);
            memory.close();
          }
        });
  }

  @Test
  void whatHasNoRoomIsRefusedOnAllRanks() throws Exception {
    ranks.run(
        2,
        (group, device) -> {
          for (long size : new long[] {1L << 40, 1L << 61}) {
            assertThatThrownBy(() -> group.allocateSymmetric(size))
                .isInstanceOf(BackendException.class)
                .hasMessageContaining("rank " + group.rank())
                .hasMessageContaining(Long.toString(size));
          }
          new OperationChecks(group, device).all(3);
        });
  }

  @Test
  void unequalSizesFailOnAllRanks() throws Exception {
    ranks.run(
        2,
        (group, device) ->
            assertThatThrownBy(() -> group.allocateSymmetric(64 + group.rank()))
                .isInstanceOf(TuttiException.class)
                .hasMessageContaining("rank 1 allocates"));
  }

  @Test
  void aFailedMappingLeavesNothing() throws Exception {
    ranks.run(
        2,
        (group, device) -> {
          meet(group, "before");
          if (group.rank() == 0) {
            machine.fake.failOn("cuMemMap", 3, 2);
          }
          meet(group, "armed");
          assertThatThrownBy(() -> group.allocateSymmetric(64))
              .isInstanceOf(BackendException.class)
              .hasMessageContaining("cuMemMap");
          new OperationChecks(group, device).all(3);
        });
  }

  @Test
  void argumentsAreChecked() throws Exception {
    ranks.run(
        1,
        (group, device) -> {
          try (SymmetricMemory memory = group.allocateSymmetric(20)) {
            assertThatThrownBy(() -> memory.barrier(memory.channels(), LONG))
                .isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> memory.barrier(-1, LONG))
                .isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> memory.putSignal(1, 0, LONG))
                .isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> memory.waitSignal(-1, 0, LONG))
                .isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> memory.buffer(0, DType.INT32, 0, 6))
                .isInstanceOf(IndexOutOfBoundsException.class);
            assertThat(memory.buffer(0, DType.INT32, 0, 5).shape()).containsExactly(5);
          }
        });
  }
}
