package dev.tutti.cuda.collective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.contracts.Sampled;
import dev.tutti.contracts.TestTier;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.ElementCases;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.NoNccl;
import dev.tutti.cuda.SparseCases;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.FakeNccl;
import dev.tutti.cuda.provider.CudaBackendProvider;
import dev.tutti.cuda.provider.CudaSession;
import dev.tutti.cuda.provider.GlooCudaProvider;
import dev.tutti.cuda.provider.NcclBackendProvider;
import dev.tutti.gloo.GlooProvider;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.DeviceSession.Recording;
import dev.tutti.spi.Time;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests sums of sparse tensors on fake devices. */
@Order(1)
class CudaSparseTest {
  private static final int MOST = 5000;
  private static final Map<String, SparseCases.Sum> SUMS = new ConcurrentHashMap<>();

  private final FakeMachine machine = new FakeMachine(3);
  private final Cuda cuda = machine.cuda;

  /** How the ranks are joined. */
  enum Kind {
    CUDA,
    NCCL,
    GLOO_BY_DEVICES,
    GLOO_BY_HOST
  }

  @AfterEach
  void nothingIsLeft() {
    for (int d = 0; d < 3; d++) {
      assertThat(Parts.of(cuda.device(d)).pinned().blocksInUse()).isZero();
    }
    machine.close();
  }

  private CudaRanks ranks(Kind kind) {
    return new CudaRanks(cuda)
        .on(provider(kind))
        .with("TUTTI_X_GLOO_CUDA_DIRECT", kind == Kind.GLOO_BY_DEVICES ? "1" : "0");
  }

  private BackendProvider provider(Kind kind) {
    FakeNccl nccl = new FakeNccl(machine.fake);
    return switch (kind) {
      case CUDA -> new CudaBackendProvider(() -> cuda, Optional::empty, NoNccl.HERE);
      case NCCL -> new NcclBackendProvider(() -> cuda, Optional::empty, settings -> nccl);
      case GLOO_BY_DEVICES, GLOO_BY_HOST ->
          new GlooProvider(List.of(new GlooCudaProvider(() -> cuda)));
    };
  }

  private static Work sum(ProcessGroup group, Tensor sparse) {
    return group.allReduce(sparse, ReduceOp.SUM, CallOptions.DEFAULT);
  }

  private static Tensor sparse(CudaDevice device, long[] places, long size) {
    Tensor indices = device.tensors().copyOf(Tensor.of(places).view(1, places.length));
    Tensor ones = Tensor.allocate(DType.FLOAT32, places.length);
    ones.fill(1);
    return Tensor.sparse(indices, device.tensors().copyOf(ones), size);
  }

  @Sampled
  @ParameterizedTest
  @EnumSource(Kind.class)
  void sumsAreThoseOfTheHost(Kind kind) throws Exception {
    for (int size : TestTier.isFast() ? new int[] {3} : new int[] {1, 3}) {
      ranks(kind).run(size, (group, device) -> new SparseCases(group, device, SUMS).all(MOST));
    }
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void theAddressesOfNumbersMayBeOdd(Kind kind) throws Exception {
    ranks(kind)
        .run(
            2,
            (group, device) -> {
              Tensor indices =
                  ElementCases.atOddAddress(device, Tensor.of(new long[] {1, 0, 1}).view(1, 3));
              Tensor values = ElementCases.atOddAddress(device, Tensor.of(1f, 2f, 4f));
              Tensor sum = sum(group, Tensor.sparse(indices, values, 3)).result().getFirst();
              assertThat(device.tensors().toHost(sum.indices()).toLongArray())
                  .containsExactly(0, 1);
              assertThat(device.tensors().toHost(sum.values()).toFloatArray())
                  .containsExactly(4, 10);
            });
  }

  /** Each rank has 3000 entries at one index; one entry per rank goes to the host and back. */
  @Test
  void whatGoesByWayOfTheHostIsCoalesced() throws Exception {
    ranks(Kind.GLOO_BY_HOST)
        .run(
            2,
            (group, device) -> {
              Tensor alike = sparse(device, new long[3000], 4);
              group.barrier();
              machine.fake.clearCalls();
              group.barrier();
              Tensor sum = sum(group, alike).result().getFirst();
              group.barrier();
              assertThat(mostCopied()).isLessThan(200);
              assertThat(device.tensors().toHost(sum.values()).toFloatArray())
                  .containsExactly(6000);
            });
  }

  /**
   * Copies the 3000 entries of one rank to the host, and from there to the devices of all three
   * ranks.
   */
  @Test
  void whatGoesToAllRanksByWayOfTheHostIsCopiedThereOnce() throws Exception {
    ranks(Kind.GLOO_BY_HOST)
        .run(
            3,
            (group, device) -> {
              int entries = group.rank() == 1 ? 3000 : 0;
              long[] places = LongStream.range(0, entries).map(i -> 3 * i).toArray();
              Tensor tensor = sparse(device, places, 9000);
              group.barrier();
              machine.fake.clearCalls();
              group.barrier();
              Tensor sum = sum(group, tensor).result().getFirst();
              group.barrier();
              assertThat(sum.indices().size(1)).isEqualTo(3000);
              assertThat(machine.fake.calls("cuMemcpyAsync"))
                  .filteredOn(call -> call.split(" ")[1].equals("24000"))
                  .hasSize(1 + 3);
            });
  }

  private long mostCopied() {
    return machine.fake.calls("cuMemcpyAsync").stream()
        .mapToLong(call -> Long.parseLong(call.split(" ")[1]))
        .max()
        .orElseThrow();
  }

  /** Gives one rank far more entries than the others, so that the parts differ in size. */
  @ParameterizedTest
  @EnumSource(Kind.class)
  void oneRankMayHaveFarMoreThanTheOthers(Kind kind) throws Exception {
    ranks(kind)
        .run(
            3,
            (group, device) -> {
              int entries = group.rank() == 1 ? 500 : group.rank();
              long[] places = LongStream.range(0, entries).map(i -> 3 * i).toArray();
              Tensor sum = sum(group, sparse(device, places, 1500)).result().getFirst();
              long[] expected = LongStream.range(0, 500).map(i -> 3 * i).toArray();
              assertThat(device.tensors().toHost(sum.indices()).toLongArray()).isEqualTo(expected);
              float[] values = device.tensors().toHost(sum.values()).toFloatArray();
              assertThat(Arrays.copyOf(values, 3)).containsExactly(2, 2, 1);
            });
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void anIndexOutsideFailsAllRanksAndNamesTheOne(Kind kind) throws Exception {
    ranks(kind)
        .run(
            2,
            (group, device) -> {
              long[] places = new long[2000];
              places[1700] = group.rank() == 1 ? 5 : 4;
              places[1800] = group.rank() == 1 ? -1 : 4;
              assertThatThrownBy(() -> sum(group, sparse(device, places, 5)).await())
                  .isInstanceOf(TuttiException.class)
                  .hasMessageContaining(
                      kind == Kind.GLOO_BY_HOST ? "rank 1" : "rank 1 called allReduceSparse")
                  .hasMessageContaining("indices[0, 1700]");
            });
  }

  @ParameterizedTest
  @EnumSource(
      value = Kind.class,
      names = {"CUDA", "NCCL", "GLOO_BY_DEVICES"})
  void otherShapesAndTypesAreNamed(Kind kind) throws Exception {
    ranks(kind)
        .run(
            2,
            (group, device) -> {
              Tensor tensor = sparse(device, new long[] {1, 2}, 5 + group.rank());
              assertThatThrownBy(() -> sum(group, tensor).await())
                  .isInstanceOf(TuttiException.class)
                  .hasMessageContaining("sparse dimensions do not match");
            });
  }

  @ParameterizedTest
  @EnumSource(
      value = Kind.class,
      names = {"CUDA", "NCCL"})
  void whatCannotBeDoneIsRefusedAndLeavesTheGroup(Kind kind) throws Exception {
    ranks(kind)
        .run(
            2,
            (group, device) -> {
              Tensor indices = device.tensors().copyOf(Tensor.allocate(DType.INT64, 2, 1));
              Tensor values = device.tensors().copyOf(Tensor.allocate(DType.FLOAT32, 1, 0));
              Tensor large = Tensor.sparse(indices, values, Long.MAX_VALUE, 2, 0);
              assertThatThrownBy(() -> sum(group, large))
                  .isInstanceOf(UnsupportedOperationException.class)
                  .hasMessageContaining("more than 2^63 places");
              Tensor small = sparse(device, new long[] {2}, 5);
              device.currentStream().await(Until.LONG); // the session uses another
              try (CudaSession session = new CudaSession(device);
                  Recording _ =
                      session.record(
                          () ->
                              assertThatThrownBy(() -> sum(group, small))
                                  .isInstanceOf(UnsupportedOperationException.class)
                                  .hasMessageContaining("cannot be captured"))) {
                Tensor sum = sum(group, small).result().getFirst();
                assertThat(device.tensors().toHost(sum.values()).toFloatArray()).containsExactly(2);
              }
            });
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void memoryThatWasFreedIsRefused(Kind kind) throws Exception {
    ranks(kind)
        .run(
            2,
            (group, device) -> {
              Tensor freed;
              try (Arena arena = Arena.ofShared()) {
                Tensor indices = device.tensors().allocate(arena, DType.INT64, 1, 2);
                Tensor values = device.tensors().allocate(arena, DType.FLOAT32, 2);
                freed = Tensor.sparse(indices, values, 5);
              }
              assertThatThrownBy(() -> sum(group, freed).await())
                  .hasStackTraceContaining("the memory");
              Tensor sum = sum(group, sparse(device, new long[] {2}, 5)).result().getFirst();
              assertThat(device.tensors().toHost(sum.values()).toFloatArray()).containsExactly(2);
            });
  }

  /**
   * Frees a tensor of a sum that timed out while the device, which is held, still has to read it.
   */
  @Sampled
  @ParameterizedTest
  @EnumSource(
      value = Kind.class,
      names = {"GLOO_BY_DEVICES", "GLOO_BY_HOST"})
  void memoryThatIsReadLateIsNotUsedAgain(Kind kind) throws Exception {
    ranks(kind)
        .within(Duration.ofSeconds(1))
        .run(
            2,
            (group, device) -> {
              Arena arena = Arena.ofShared();
              Tensor indices = device.tensors().allocate(arena, DType.INT64, 1, 2000);
              Tensor values = device.tensors().allocate(arena, DType.FLOAT32, 2000);
              long address = indices.segment().address();
              group.store().barrier("allocated", 2, Until.LONG);
              CountDownLatch hold = machine.hold(device.currentStream());
              try {
                Tensor sparse = Tensor.sparse(indices, values, 5);
                assertThatThrownBy(() -> sum(group, sparse).await())
                    .isInstanceOf(TuttiException.class);
                arena.close();
                Tensor next = device.tensors().allocate(DType.INT64, 1, 2000);
                assertThat(next.segment().address()).isNotEqualTo(address);
                group.store().barrier("checked", 2, Until.LONG);
              } finally {
                hold.countDown();
              }
              assertThat(
                      Parts.of(device)
                          .owner()
                          .awaitAll(Time.SYSTEM, Time.SYSTEM.deadline(Until.LONG)))
                  .isTrue();
            });
  }

  @Sampled
  @ParameterizedTest
  @EnumSource(Kind.class)
  void aRankThatDoesNotComeIsNamedAtTheDeadline(Kind kind) throws Exception {
    Duration timeout = Duration.ofSeconds(2);
    AtomicReference<Throwable> failure = new AtomicReference<>();
    ranks(kind)
        .run(
            2,
            (group, device) -> {
              group.barrier();
              // Both ranks have left the barrier before one times out.
              group.store().barrier("ready", 2, Until.LONG);
              group.setTimeout(timeout);
              if (group.rank() == 0) {
                Tensor tensor = sparse(device, new long[] {1}, 5);
                failure.set(catchThrowable(() -> sum(group, tensor).await()));
              }
              group.store().barrier("seen", 2, timeout.plus(Until.LONG));
            });
    assertThat(failure.get()).isInstanceOf(TuttiException.class).hasMessageContaining("rank 1");
  }

  @ParameterizedTest
  @EnumSource(
      value = Kind.class,
      names = {"CUDA", "NCCL"})
  void anAbortEndsTheWait(Kind kind) throws Exception {
    ranks(kind)
        .run(
            2,
            (group, device) -> {
              group.barrier();
              // Both ranks have left the barrier before one aborts the group.
              group.store().barrier("ready", 2, Until.LONG);
              Tensor tensor = sparse(device, new long[] {1}, 5);
              CountDownLatch hold = machine.hold(device.currentStream());
              Thread abort =
                  Thread.ofVirtual()
                      .start(
                          () -> {
                            Until.holds("the sum", this::isCoalescing);
                            group.abort("enough");
                          });
              try {
                assertThatThrownBy(() -> sum(group, tensor).await())
                    .isInstanceOf(TuttiException.class)
                    .hasMessageContaining("enough");
              } finally {
                hold.countDown();
                abort.join();
              }
            });
  }

  private boolean isCoalescing() {
    return machine.fake.calls("cuLaunchKernel").stream().anyMatch(c -> c.contains("coalesce_runs"));
  }

  /** Fails each driver call in turn, until a sum needs no further calls. */
  @Sampled
  @ParameterizedTest
  @CsvSource({
    "cuMemcpyAsync, 1", "cuEventRecord, 1", "cuLaunchKernel, 1",
    "cuMemcpyAsync, 2", "cuEventRecord, 2", "cuLaunchKernel, 2"
  })
  void anErrorOfTheDriverInTheMiddleIsReported(String call, int size) throws Exception {
    boolean[] failed = {true};
    for (int nth = 1; failed[0]; nth++) {
      int failing = nth;
      failed[0] = false;
      try (FakeMachine own = new FakeMachine(size)) {
        new CudaRanks(own.cuda)
            .run(
                size,
                (group, device) -> {
                  Tensor tensor = sparse(device, new long[] {1, 1, 3}, 5);
                  group.barrier();
                  group.store().barrier("ready", size, Until.LONG);
                  if (group.rank() == 0) {
                    own.fake.failOn(call, failing, 1);
                  }
                  group.store().barrier("set", size, Until.LONG);
                  try {
                    Tensor sum = sum(group, tensor).result().getFirst();
                    own.fake.clearFailures();
                    assertThat(device.tensors().toHost(sum.values()).toFloatArray())
                        .containsExactly(2 * size, size);
                  } catch (TuttiException e) {
                    assertThat(e).hasMessageContaining(call);
                    failed[0] = true;
                  }
                });
        for (int d = 0; d < size; d++) {
          assertThat(Parts.of(own.cuda.device(d)).pinned().blocksInUse())
              .as("%s %s", call, nth)
              .isLessThanOrEqualTo(call.equals("cuEventRecord") ? 1 : 0);
        }
      }
      assertThat(nth).as("calls of %s", call).isLessThan(200);
    }
  }
}
