package dev.tutti.cuda.gloo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.PartedCall;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.provider.GlooCudaProvider;
import dev.tutti.gloo.GlooProvider;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests Gloo operations on CUDA tensors that fail after some of their parts are done. */
@Timeout(300)
class GlooCudaPartsFaultsTest {
  private static final int UNKNOWN_ERROR = 999;
  private static final int NUMEL = 200_000;
  private static final int SOME = 50;

  @AutoClose private final FakeMachine machine = new FakeMachine(2);

  private CudaRanks ranks(String chunkBytes) {
    return new CudaRanks(machine.cuda)
        .on(new GlooProvider(List.of(new GlooCudaProvider(() -> machine.cuda))))
        .with("TUTTI_X_GLOO_CUDA_DIRECT", "0")
        .with("TUTTI_X_GLOO_CUDA_CHUNK_BYTES", chunkBytes);
  }

  private void assertThatAllIsGivenBack() throws Exception {
    for (int d = 0; d < 2; d++) {
      assertThat(Parts.of(machine.cuda.device(d)).pinned().blocksInUse()).isZero();
    }
    ranks("1K")
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(new float[3000]).fill(2));
              group.allReduce(tensor);
              assertThat(device.tensors().toHost(tensor).toFloatArray()).containsOnly(4);
            });
  }

  @ParameterizedTest
  @EnumSource
  void aCopyThatFailsInTheMiddleLeavesNothing(PartedCall call) throws Exception {
    failInTheMiddle(call, "1K", "cuMemcpyAsync", SOME);
  }

  @ParameterizedTest
  @EnumSource
  void anEventThatFailsInTheMiddleLeavesNothing(PartedCall call) throws Exception {
    failInTheMiddle(call, "1K", "cuEventRecord", SOME);
  }

  @ParameterizedTest
  @EnumSource
  void noRoomForAPartLeavesNothing(PartedCall call) throws Exception {
    failInTheMiddle(call, "32K", "cuMemHostAlloc", 3);
  }

  private void failInTheMiddle(PartedCall call, String chunkBytes, String function, int nth)
      throws Exception {
    Queue<Throwable> thrown = new ConcurrentLinkedQueue<>();
    ranks(chunkBytes)
        .run(
            2,
            (group, device) -> {
              group.store().barrier("ready", 2, Until.LONG);
              if (group.rank() == 0) {
                machine.fake.failOn(function, nth, UNKNOWN_ERROR);
              }
              group.store().barrier("armed", 2, Until.LONG);
              Throwable own =
                  catchThrowable(
                      () ->
                          call.run(
                              group,
                              n -> device.tensors().allocate(DType.FLOAT32, n),
                              NUMEL,
                              false));
              if (own != null) {
                thrown.add(own);
              }
              Until.holds("the failure", () -> group.failure().isPresent());
            });
    assertThat(thrown)
        .allSatisfy(each -> assertThat(each).isInstanceOf(TuttiException.class))
        .anySatisfy(each -> assertThat(each).hasStackTraceContaining(function + " failed"));
    assertThatAllIsGivenBack();
  }

  @ParameterizedTest
  @EnumSource
  void anAbortInTheMiddleEndsIt(PartedCall call) throws Exception {
    Queue<Throwable> thrown = new ConcurrentLinkedQueue<>();
    ranks("1K")
        .within(Duration.ofSeconds(40))
        .run(
            2,
            (group, device) -> {
              FutureTask<?> other =
                  beside(
                      () -> {
                        Until.holds("some copies", () -> copies().size() >= SOME);
                        group.abort("enough");
                      });
              Throwable own =
                  catchThrowable(
                      () -> {
                        // The first call may have ended before the other thread aborts.
                        while (true) {
                          call.run(
                              group,
                              n -> device.tensors().allocate(DType.FLOAT32, n),
                              NUMEL,
                              false);
                        }
                      });
              assertThat(other).succeedsWithin(Until.LONG);
              thrown.add(own);
            });
    assertThat(thrown)
        .hasSize(2)
        .allSatisfy(
            each ->
                assertThat(each).isInstanceOf(TuttiException.class).hasMessageContaining("enough"));
    assertThatAllIsGivenBack();
  }

  /** What a test does while a call of a rank runs. */
  private interface Steps {
    void run() throws Exception;
  }

  private static FutureTask<?> beside(Steps steps) {
    FutureTask<?> task =
        new FutureTask<>(
            () -> {
              steps.run();
              return null;
            });
    Thread.ofPlatform().daemon().start(task);
    return task;
  }

  private List<String> copies() {
    return machine.fake.calls("cuMemcpyAsync");
  }

  /** Returns the streams in which copies ran, in order. */
  private List<Long> streams() {
    return copies().stream()
        .map(copy -> Long.decode(copy.substring(copy.lastIndexOf(' ') + 1)))
        .distinct()
        .toList();
  }

  /**
   * Frees tensors of an operation that has ended while one of its streams, which is held, still has
   * copies to run.
   */
  @ParameterizedTest
  @CsvSource({"ALL_GATHER, 0", "ALL_GATHER, 1", "REDUCE_SCATTER_INTO, 0", "REDUCE_SCATTER_INTO, 1"})
  @Tag("full")
  void memoryThatIsStillCopiedIsNotUsedAgain(PartedCall call, int held) throws Exception {
    boolean isAborted = false;
    while (!isAborted) {
      machine.fake.clearCalls();
      isAborted = isMemoryKept(call, held);
    }
    assertThatAllIsGivenBack();
  }

  /** Returns false if the operation had succeeded before the thread beside it got to its abort. */
  private boolean isMemoryKept(PartedCall call, int held) throws Exception {
    AtomicBoolean isAborted = new AtomicBoolean();
    ranks("1K")
        .onOneDevice()
        .run(
            1,
            (group, device) -> {
              Arena arena = Arena.ofShared();
              List<Long> addresses = new ArrayList<>();
              PartedCall.Memory memory =
                  n -> {
                    Tensor tensor = device.tensors().allocate(arena, DType.FLOAT32, n);
                    addresses.add(tensor.segment().address());
                    return tensor;
                  };
              CountDownLatch ended = new CountDownLatch(1);
              FutureTask<?> other =
                  beside(
                      () -> {
                        Until.holds("copies both ways", () -> streams().size() == 2);
                        CountDownLatch hold = machine.hold(device, streams().get(held));
                        try {
                          group.abort("enough");
                          ended.await();
                        } finally {
                          hold.countDown();
                        }
                      });
              try {
                Throwable own = catchThrowable(() -> call.run(group, memory, 4 * NUMEL, false));
                isAborted.set(own != null);
                if (own == null) {
                  return;
                }
                assertThat(own).isInstanceOf(TuttiException.class).hasMessageContaining("enough");
                assertThat(Parts.of(device).pinned().blocksInUse()).isZero();
                arena.close();
                for (int i = 0; i < 2; i++) {
                  Tensor next = device.tensors().allocate(DType.FLOAT32, 4 * NUMEL);
                  assertThat(addresses).doesNotContain(next.segment().address());
                }
              } finally {
                ended.countDown();
                // The original cause of the failure takes precedence over what it led to.
                assertThat(other).succeedsWithin(Until.LONG);
              }
            });
    return isAborted.get();
  }
}
