package dev.tutti.cuda.gloo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.Capabilities.Feature;
import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.FakeStridedCopy;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.provider.CudaSession;
import dev.tutti.cuda.provider.GlooCudaProvider;
import dev.tutti.gloo.GlooProvider;
import dev.tutti.gloo.spi.GlooDeviceProvider;
import dev.tutti.gloo.spi.GlooGroup;
import dev.tutti.kernels.StridedKernel;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.store.HashStore;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests Gloo groups with CUDA tensors on fake devices. */
class GlooCudaTest {
  private static final int NUMEL = 5000;

  /**
   * The maximum number of events, over all ranks, that page-locked memory keeps until it is reused.
   */
  private static final int COPIES = 32;

  private FakeMachine machine;

  @BeforeEach
  void open() {
    machine = new FakeMachine(2);
  }

  @AfterEach
  void nothingIsLeft() {
    for (int d = 0; d < 2; d++) {
      assertThat(Parts.of(machine.cuda.device(d)).pinned().blocksInUse()).isZero();
      assertThat(Parts.of(machine.cuda.device(d)).events().inUse()).isLessThanOrEqualTo(COPIES);
    }
    machine.close();
  }

  private CudaRanks ranks() {
    return new CudaRanks(machine.cuda)
        .on(new GlooProvider(List.of(new GlooCudaProvider(() -> machine.cuda))))
        .with("TUTTI_X_GLOO_CUDA_DIRECT", "0")
        .with("TUTTI_X_GLOO_CUDA_CHUNK_BYTES", "4K");
  }

  private static Tensor filled(CudaDevice device, float value) {
    float[] values = new float[NUMEL];
    Arrays.fill(values, value);
    return device.tensors().copyOf(Tensor.of(values));
  }

  private static float[] read(CudaDevice device, Tensor tensor) {
    return device.tensors().toHost(tensor).toFloatArray();
  }

  private static float[] all(float value) {
    float[] values = new float[NUMEL];
    Arrays.fill(values, value);
    return values;
  }

  @Test
  void oneGroupHasTensorsOfBothKinds() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              Tensor onDevice = filled(device, group.rank() + 1);
              Tensor onHost = Tensor.of(10f * (group.rank() + 1));
              group.allReduce(onDevice);
              group.allReduce(onHost);
              group.allReduce(onDevice);
              assertThat(read(device, onDevice)).isEqualTo(all(6));
              assertThat(onHost.toFloatArray()).containsExactly(30);
              assertThat(group.backends())
                  .containsEntry("cpu", "gloo")
                  .containsEntry("cuda", "gloo");
              assertThat(group.sequenceNumber()).isEqualTo(3);
            });
  }

  @Test
  void partsAreCopiedWhileOthersAreReduced() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              Tensor tensor = filled(device, 1 + group.rank());
              group.allReduce(tensor, ReduceOp.AVG);
              assertThat(read(device, tensor)).isEqualTo(all(1.5f));
              group.reduce(tensor, ReduceOp.SUM, 1, CallOptions.DEFAULT);
              if (group.rank() == 1) {
                assertThat(read(device, tensor)).isEqualTo(all(3));
              }
              group.broadcast(tensor, 1, CallOptions.DEFAULT);
              assertThat(read(device, tensor)).isEqualTo(all(3));
            });
    long copies =
        machine.fake.calls("cuMemcpyAsync").stream().filter(c -> c.contains(" 4096 ")).count();
    assertThat(copies).as("copies of a whole part").isGreaterThanOrEqualTo(2 * (4 + 4 + 4));
  }

  /** Starts after the work in the caller's stream, although another thread runs the operation. */
  @Test
  void anAsynchronousOperationWaitsForTheCallersStream() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              Tensor tensor = filled(device, 1);
              CountDownLatch hold = machine.hold(device.currentStream());
              Tensor two = Tensor.of(all(2));
              CudaStream own = device.currentStream();
              Thread later =
                  Thread.ofPlatform()
                      .start(
                          () -> {
                            try (CudaStream.Scope _ = own.use()) {
                              device.tensors().copyFromHost(tensor, two);
                            }
                          });
              later.join();
              Work work = group.allReduce(tensor, ReduceOp.SUM, CallOptions.ASYNC);
              assertThat(work.await(Duration.ofMillis(50))).isFalse();
              hold.countDown();
              work.synchronize();
              assertThat(read(device, tensor)).isEqualTo(all(4));
            });
  }

  /** Holds the stream in which the result is copied to the device, after that of the caller. */
  @Test
  void callsReturnWhenTheCopyOfTheResultIsInItsStream() throws Exception {
    ranks()
        .with("TUTTI_X_GLOO_CUDA_CHUNK_BYTES", "64K")
        .run(
            2,
            (group, device) -> {
              Tensor tensor = filled(device, group.rank() + 1);
              Tensor other = filled(device, group.rank() + 3);
              CountDownLatch hold =
                  group.rank() == 0 ? new CountDownLatch(1) : machine.hold(device.currentStream());
              group.broadcast(tensor, 0);
              Work work = group.broadcast(other, 0, CallOptions.ASYNC);
              work.synchronize();
              CompletableFuture<List<Tensor>> done = work.toCompletableFuture();
              if (group.rank() == 1) {
                assertThat(work.isCompleted()).isFalse();
                assertThat(done).isNotDone();
                assertThat(device.currentStream().isIdle()).isFalse();
              }
              hold.countDown();
              assertThat(read(device, tensor)).isEqualTo(all(1));
              assertThat(read(device, other)).isEqualTo(all(3));
              assertThat(done.get(60, TimeUnit.SECONDS)).containsExactly(other);
              assertThat(work.isSuccess()).isTrue();
            });
  }

  /** Finds the stream in which the only rank of a group receives its results. */
  private long resultStream(ProcessGroup group, CudaDevice device) {
    group.allReduce(filled(device, 1), ReduceOp.SUM, CallOptions.DEFAULT).await();
    return stream(machine.fake.calls("cuMemcpyAsync").getLast());
  }

  /** Returns the stream of a call, which is the last argument. */
  private static long stream(String call) {
    return Long.decode(call.substring(call.lastIndexOf(' ') + 1));
  }

  @Test
  void anOperationReadsTheResultsOfTheOneBeforeThatAreNotOnTheDeviceYet() throws Exception {
    ranks()
        .with("TUTTI_X_GLOO_CUDA_CHUNK_BYTES", "64K")
        .onOneDevice()
        .run(
            1,
            (group, device) -> {
              CountDownLatch hold = machine.hold(device, resultStream(group, device));
              Tensor tensor = filled(device, 1);
              Work _ = group.allReduce(tensor, ReduceOp.premulSum(2), CallOptions.ASYNC);
              Work second = group.allReduce(tensor, ReduceOp.premulSum(2), CallOptions.ASYNC);
              assertThat(second.await(Duration.ofMillis(50))).isFalse();
              hold.countDown();
              second.await();
              assertThat(read(device, tensor)).isEqualTo(all(4));
            });
  }

  @Test
  void memoryOfAResultThatIsNotOnTheDeviceYetIsNotUsedAgain() throws Exception {
    ranks()
        .with("TUTTI_X_GLOO_CUDA_CHUNK_BYTES", "64K")
        .onOneDevice()
        .run(
            1,
            (group, device) -> {
              CountDownLatch hold = machine.hold(device, resultStream(group, device));
              long address;
              try (Arena arena = Arena.ofShared()) {
                Tensor tensor = device.tensors().allocate(arena, DType.FLOAT32, NUMEL);
                address = tensor.segment().address();
                try (CudaStream.Scope _ = device.poolStream().use()) {
                  group.allReduce(tensor);
                }
              }
              Tensor next = device.tensors().allocate(DType.FLOAT32, NUMEL);
              assertThat(next.segment().address()).isNotEqualTo(address);
              hold.countDown();
            });
  }

  @ParameterizedTest
  @ValueSource(strings = {"0", "1"})
  void tensorsWithGapsAreTakenAsTheyAre(String direct) throws Exception {
    ranks()
        .with("TUTTI_X_GLOO_CUDA_DIRECT", direct)
        .run(
            2,
            (group, device) -> {
              Tensor base = device.tensors().copyOf(Tensor.of(1f, 2, 3, 4, 5, 6).view(2, 3));
              long used = device.tensors().usedBytes();
              group.allReduce(base.transpose(0, 1));
              group.allReduce(base.narrow(1, 1, 1));
              assertThat(device.tensors().usedBytes()).isEqualTo(used);
              group.allReduce(base);
              assertThat(read(device, base)).containsExactly(4, 16, 12, 16, 40, 24);
              Tensor all = device.tensors().copyOf(Tensor.of(0f, 0, 0, 0));
              group.allGatherInto(all.view(2, 2).transpose(0, 1), base.narrow(1, group.rank(), 1));
              assertThat(read(device, all)).containsExactly(4, 16, 16, 40);
              Tensor own = device.tensors().copyOf(Tensor.of(9f, 9, 9));
              Tensor expanded =
                  Tensor.wrap(
                      own.segment(), DType.FLOAT32, new long[] {2}, new long[] {0}, own.device());
              assertThatThrownBy(() -> group.allReduce(expanded))
                  .isInstanceOf(IllegalArgumentException.class)
                  .hasMessageContaining("its elements share memory");
              assertThat(group.capabilities(own.device()).has(Feature.STRIDED_TENSORS)).isTrue();
            });
  }

  /** Holds the copy from dense memory to the tensor that the next operation reads. */
  @Test
  void anOperationReadsAResultWithGapsThatIsNotThereYet() throws Exception {
    ranks()
        .onOneDevice()
        .run(
            1,
            (group, device) -> {
              Tensor base = device.tensors().copyOf(Tensor.of(1f, 2, 3, 4).view(2, 2));
              group.allReduce(base.transpose(0, 1), ReduceOp.SUM, CallOptions.DEFAULT).await();
              String launch = machine.fake.calls("cuLaunchKernel").getLast();
              CountDownLatch hold = machine.hold(device, stream(launch));
              Work first =
                  group.allReduce(base.transpose(0, 1), ReduceOp.premulSum(2), CallOptions.ASYNC);
              Work second = group.allReduce(base, ReduceOp.premulSum(2), CallOptions.ASYNC);
              assertThat(second.await(Duration.ofMillis(50))).isFalse();
              hold.countDown();
              second.synchronize();
              first.await();
              assertThat(read(device, base)).containsExactly(4, 8, 12, 16);
            });
  }

  /** Holds the copy from dense memory to the tensor that the next operation overwrites. */
  @Test
  void anOperationOverwritesAResultWithGapsThatIsNotThereYet() throws Exception {
    CountDownLatch hold = new CountDownLatch(1);
    FakeStridedCopy copy = new FakeStridedCopy(machine.fake);
    int[] sizes = new int[StridedKernel.copy().parameters().size()];
    Arrays.fill(sizes, Long.BYTES);
    machine.fake.kernel(
        StridedKernel.copy().name(),
        sizes,
        (launch, arguments) -> {
          boolean isToDense = arguments[4].get(ValueLayout.JAVA_INT, 0) != 0;
          if (!isToDense) {
            hold.await();
          }
          copy.run(launch, arguments);
        });
    ranks()
        .run(
            2,
            (group, device) -> {
              Tensor base = device.tensors().copyOf(Tensor.of(1f, 2, 3, 4).view(2, 2));
              Tensor sum = group.rank() == 0 ? base : base.transpose(0, 1);
              Work first = group.allReduce(sum, ReduceOp.SUM, CallOptions.ASYNC);
              Work second = group.broadcast(base, 0, CallOptions.ASYNC);
              if (group.rank() == 1) {
                assertThat(second.await(Duration.ofMillis(50))).isFalse();
                hold.countDown();
              }
              second.await();
              first.await();
              assertThat(read(device, base)).containsExactly(2, 5, 5, 8);
            });
  }

  @Test
  void noRoomForOneTensorLeavesNothingOfTheOthers() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              Tensor one = device.tensors().allocate(DType.FLOAT32, 100_000);
              Tensor two = device.tensors().allocate(DType.FLOAT32, 400_000);
              group.barrier();
              // Both ranks have left the barrier before one fails.
              group.store().barrier("through", 2, Until.LONG);
              if (group.rank() == 0) {
                machine.fake.failOn("cuMemHostAlloc", 2, CudaException.OUT_OF_MEMORY);
                List<Tensor> outputs =
                    List.of(
                        device.tensors().allocate(DType.FLOAT32, 100_000),
                        device.tensors().allocate(DType.FLOAT32, 400_000));
                assertThatThrownBy(() -> group.allToAll(outputs, List.of(one, two)))
                    .hasStackTraceContaining("cuMemHostAlloc failed");
                assertThat(Parts.of(device).pinned().blocksInUse()).isZero();
              }
              Until.holds("the failure", () -> group.failure().isPresent());
              group.store().barrier("failed", 2, Until.LONG);
            });
  }

  @Test
  void aGraphCannotRecordIt() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              Tensor tensor = filled(device, 1);
              if (group.rank() == 0) {
                try (CudaSession session = new CudaSession(device)) {
                  assertThatThrownBy(() -> session.record(() -> group.allReduce(tensor)))
                      .isInstanceOf(UnsupportedOperationException.class)
                      .hasMessageContaining("cannot be captured into a graph");
                }
              }
              group.allReduce(tensor);
              assertThat(read(device, tensor)).isEqualTo(all(2));
            });
  }

  @Test
  void messagesOfDeviceTensorsAreRefused() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              Tensor tensor = filled(device, 1);
              assertThat(group.capabilities(tensor.device()).has(OpType.SEND)).isFalse();
              assertThatThrownBy(() -> group.send(tensor, 1 - group.rank()))
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessageContaining("does not support send");
              group.barrier();
            });
  }

  @Test
  void aFreedSumOfSparseTensorsStaysWhileTheCallersStreamReadsIt() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              Tensor indices = device.tensors().copyOf(Tensor.of(1L, 3L).view(1, 2));
              Tensor sparse = Tensor.sparse(indices, device.tensors().copyOf(Tensor.of(5f, 7f)), 4);
              CudaStream reader = device.currentStream();
              Tensor[] sum = {sum(group, sparse)};
              assertThat(device.tensors().toHost(sum[0].values()).toFloatArray())
                  .containsExactly(10, 14);
              long first = sum[0].values().segment().address();
              CountDownLatch held = machine.hold(reader);
              long used = device.tensors().usedBytes();
              sum[0] = null;
              Until.holds(
                  "the collector",
                  () -> {
                    System.gc();
                    return device.tensors().usedBytes() <= used - 1024;
                  });
              try (CudaStream.Scope _ = device.poolStream().use()) {
                Tensor next = sum(group, sparse);
                assertThat(next.values().segment().address()).isNotEqualTo(first);
                assertThat(next.indices().segment().address()).isNotEqualTo(first);
              }
              held.countDown();
            });
  }

  private static Tensor sum(ProcessGroup group, Tensor sparse) {
    Work work = group.allReduce(sparse, ReduceOp.SUM, CallOptions.DEFAULT);
    work.await();
    return work.result().getFirst();
  }

  @Test
  void devicesThatReachEachOtherDoItThemselves() throws Exception {
    ranks()
        .with("TUTTI_X_GLOO_CUDA_DIRECT", "1")
        .run(
            2,
            (group, device) -> {
              Tensor tensor = filled(device, group.rank() + 1);
              Tensor onHost = Tensor.of(1f);
              group.allReduce(tensor);
              group.allReduce(onHost);
              Work work = group.allReduce(tensor, ReduceOp.SUM, CallOptions.ASYNC);
              work.await();
              assertThat(read(device, tensor)).isEqualTo(all(6));
              assertThat(onHost.toFloatArray()).containsExactly(2);
              Tensor flags = device.tensors().copyOf(Tensor.allocate(DType.BOOL, 3));
              group.allReduce(flags);
              assertThat(group.diagnostics().usageByPath())
                  .containsEntry("cuda/one-shot", 2L)
                  .containsEntry("gloo/shared/one-shot", 2L);
            });
  }

  @Test
  void devicesThatDoNotReachEachOtherGoThroughTheHost() throws Exception {
    machine.fake.cutLink(0, 1);
    assertGoesThroughTheHost(ranks(), machine, 2);
  }

  private static void assertGoesThroughTheHost(CudaRanks ranks, FakeMachine machine, int size)
      throws Exception {
    ranks
        .with("TUTTI_X_GLOO_CUDA_DIRECT", "1")
        .run(
            size,
            (group, device) -> {
              Tensor tensor = filled(device, group.rank() + 1);
              group.allReduce(tensor);
              assertThat(read(device, tensor)).isEqualTo(all(size * (size + 1) / 2f));
            });
    assertThat(machine.fake.calls("cuLaunchKernel")).isEmpty();
  }

  @Test
  void oneDeviceThatAnotherDoesNotReachSendsAllThroughTheHost() throws Exception {
    try (FakeMachine three = new FakeMachine(3)) {
      three.fake.cutLink(1, 2);
      CudaRanks ranks =
          new CudaRanks(three.cuda)
              .on(new GlooProvider(List.of(new GlooCudaProvider(() -> three.cuda))));
      assertGoesThroughTheHost(ranks, three, 3);
    }
  }

  @Test
  void aDeviceThatCannotBeOpenedSendsAllThroughTheHost() throws Exception {
    machine.fake.failOn("cuDevicePrimaryCtxRetain", 2, CudaException.OUT_OF_MEMORY);
    HashStore store = new HashStore();
    CudaRanks ranks = ranks().with("TUTTI_X_GLOO_CUDA_DIRECT", "1");
    try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
      List<Future<float[]>> sums = new ArrayList<>();
      for (int r = 0; r < 2; r++) {
        int rank = r;
        sums.add(
            threads.submit(
                () -> {
                  try (ProcessGroup group = ProcessGroup.init(ranks.options(store, rank, 2))) {
                    CudaDevice device = machine.cuda.device(rank);
                    Tensor tensor = filled(device, rank + 1);
                    group.allReduce(tensor);
                    return read(device, tensor);
                  }
                }));
      }
      for (Future<float[]> sum : sums) {
        assertThat(sum.get(60, TimeUnit.SECONDS)).isEqualTo(all(3));
      }
    }
    assertThat(machine.fake.calls("cuLaunchKernel")).isEmpty();
  }

  @Test
  void aGroupForWhichOneRankHasNoPageLockedMemoryGoesThroughTheHost() throws Exception {
    machine.fake.failOn("cuMemHostAlloc", 1, CudaException.OUT_OF_MEMORY);
    assertGoesThroughTheHost(ranks(), machine, 2);
  }

  @Test
  void itSaysWhetherTheDevicesReachEachOther() {
    BackendContext context =
        BackendContext.builder("0", 0, 2, new HashStore(), Duration.ofSeconds(5))
            .device("cpu", Device.cuda(0))
            .settings(Settings.ofEnvironment(Map.of()))
            .build();
    Backend host = new GlooCudaBackend(machine.cuda, group(context, null), null);
    try (Backend opened = new GlooCudaProvider(() -> machine.cuda).open(group(context, host))) {
      assertThat(((GlooCudaBackend) opened).hasGpuDirect()).isFalse();
    }
  }

  private static GlooGroup group(BackendContext context, Backend host) {
    return new TestGlooGroup(context, host, true, false);
  }

  @Test
  void twoProvidersOfOneKindAreRefused() {
    GlooDeviceProvider one = new GlooCudaProvider(() -> machine.cuda);
    assertThatThrownBy(() -> new GlooProvider(List.of(one, new GlooCudaProvider())))
        .isInstanceOf(TuttiException.class)
        .hasMessageContaining("two providers serve 'cuda' in Gloo groups");
  }
}
