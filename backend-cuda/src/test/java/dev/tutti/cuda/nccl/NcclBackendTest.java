package dev.tutti.cuda.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.StoreTimeoutException;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.ForgottenWorks;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.driver.FakeNccl;
import dev.tutti.cuda.provider.CudaSession;
import dev.tutti.cuda.provider.NcclBackendProvider;
import dev.tutti.spi.BackendContext;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests groups on a fake NCCL, also with a rank that does not run Tutti. */
class NcclBackendTest {
  private static final String ID_KEY = "0//cuda//0";

  private FakeMachine machine;
  private FakeNccl nccl;

  @BeforeEach
  void open() {
    machine = new FakeMachine(2);
    nccl = new FakeNccl(machine.fake);
  }

  @AfterEach
  void nothingIsLeft() {
    machine.close();
    assertThat(nccl.communicators()).isZero();
  }

  private GroupOptions options(HashStore store, int rank, Duration timeout) {
    return GroupOptions.DEFAULT
        .withStore(store)
        .withRank(rank)
        .withSize(2)
        .withDevice(Device.cuda(rank))
        .withProvider(
            new NcclBackendProvider(() -> machine.cuda, Optional::empty, settings -> nccl))
        .withTimeout(timeout);
  }

  private CudaRanks ranks() {
    return new CudaRanks(machine.cuda)
        .on(new NcclBackendProvider(() -> machine.cuda, Optional::empty, settings -> nccl));
  }

  @Test
  void callsBlockWhereEachRankHasAProcessOfItsOwn() throws Exception {
    communicatorsOfTwoRanks(4);
    assertThat(nccl.calls("ncclCommSplit")).isEqualTo(2);
  }

  private void communicatorsOfTwoRanks(int expected) throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              assertThat(nccl.communicators()).isEqualTo(expected);
              group.store().barrier("counted", 2, Until.LONG);
            });
  }

  @Test
  void callsOfRanksOfOneProcessDoNotBlock() throws Exception {
    nccl.beOneProcess();
    communicatorsOfTwoRanks(2);
    assertThat(nccl.calls("ncclCommSplit")).isZero();
  }

  /** c10d makes the same calls, without those for empty parts, which do nothing in NCCL. */
  @Test
  void partsOfUnequalSizeAreBroadcastAndReducedOneByOne() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              int before = nccl.calls("ncclBroadcast");
              group.store().barrier("counted", 2, Until.LONG);
              long[] splits = {0, 3};
              Tensor whole = device.tensors().copyOf(Tensor.of(1f, 2f, 4f));
              Tensor own =
                  device.tensors().copyOf(Tensor.allocate(DType.FLOAT32, splits[group.rank()]));
              group.reduceScatterInto(own, whole, splits, ReduceOp.SUM);
              group.allGatherInto(whole, own, splits);
              assertThat(device.tensors().toHost(whole).toFloatArray()).containsExactly(2, 4, 8);
              group.store().barrier("called", 2, Until.LONG);
              assertThat(nccl.calls("ncclBroadcast") - before).isEqualTo(2);
            });
    assertThat(nccl.calls("ncclReduce")).isEqualTo(2);
    assertThat(nccl.calls("ncclReduceScatter") + nccl.calls("ncclAllGather")).isZero();
  }

  @Test
  void namesTheRankThatDoesNotCome() throws Exception {
    HashStore store = new HashStore();
    assertThatThrownBy(() -> ProcessGroup.init(options(store, 0, Duration.ofMillis(300))))
        .isInstanceOf(TuttiException.class)
        .hasStackTraceContaining("rank 0/2: not all ranks came to the NCCL communicator")
        .hasStackTraceContaining("ranks [1] did not arrive as ranks of Tutti");
    assertThat(store.get(ID_KEY, Duration.ZERO)).hasSize(NcclCalls.UNIQUE_ID_BYTES);
  }

  @Test
  void namesRankZeroIfItOffersNothing() throws Exception {
    HashStore store = new HashStore();
    assertThatThrownBy(() -> ProcessGroup.init(options(store, 1, Duration.ofMillis(300))))
        .isInstanceOf(TuttiException.class)
        .hasRootCauseInstanceOf(StoreTimeoutException.class)
        .hasStackTraceContaining("rank 0 did not offer an NCCL communicator in time");
  }

  @Test
  void refusesAnIdOfAnotherLength() {
    HashStore store = new HashStore();
    store.set(ID_KEY, new byte[5]);
    assertThatThrownBy(() -> ProcessGroup.init(options(store, 1, Duration.ofSeconds(5))))
        .hasStackTraceContaining("has 5 bytes, not 128")
        .hasStackTraceContaining(RendezvousException.class.getName());
  }

  @Test
  void saysWhatNcclSaysWhenACommunicatorCannotBe() {
    nccl.failOn("ncclCommInitRankConfig", 5);
    assertThatThrownBy(() -> ranks().run(2, (group, device) -> {}))
        .hasStackTraceContaining("ncclCommInitRankConfig failed: result 5 (5); played failure");
  }

  @Test
  void aGroupOfWhichTheFirstCallsFailGivesBackWhatTheyUsed() throws Exception {
    ranks().run(2, (group, device) -> {});
    int streams = machine.fake.calls("cuStreamCreateWithPriority").size();
    for (int i = 0; i < 20; i++) { // more than the streams in reserve
      nccl.failOn(i % 2 == 0 ? "ncclAllReduce" : "ncclBroadcast", 3);
      assertThatThrownBy(() -> ranks().run(2, (group, device) -> {}))
          .hasStackTraceContaining("failed: result 3 (3); played failure");
      for (int d = 0; d < 2; d++) {
        assertThat(machine.cuda.device(d).tensors().usedBytes()).isZero();
      }
    }
    assertThat(machine.fake.calls("cuStreamCreateWithPriority")).hasSize(streams);
  }

  @Test
  void saysWhichCallFailed() {
    assertThatThrownBy(
            () ->
                ranks()
                    .run(
                        2,
                        (group, device) -> {
                          Tensor tensor = device.tensors().copyOf(Tensor.of(1f));
                          group.barrier();
                          nccl.failOn("ncclAllReduce", 3);
                          group.allReduce(tensor);
                        }))
        .isInstanceOf(TuttiException.class)
        .hasMessageContaining("allReduce failed: result 3 (3); played failure");
  }

  @Test
  void noticesWhatNcclReportsWhileTheDeviceWaits() throws Exception {
    CountDownLatch failed = new CountDownLatch(1);
    ranks()
        .run(
            2,
            (group, device) -> {
              if (group.rank() == 1) {
                assertThat(failed.await(60, TimeUnit.SECONDS)).isTrue();
                return;
              }
              Tensor tensor = device.tensors().copyOf(Tensor.of(1f));
              Work work = group.allReduce(tensor, ReduceOp.SUM, CallOptions.ASYNC);
              nccl.failAll(NcclResult.REMOTE_ERROR);
              assertThatThrownBy(work::await)
                  .isInstanceOf(TuttiException.class)
                  .hasMessageContaining("NCCL failed: result 6 (6); played failure");
              failed.countDown();
            });
  }

  @Test
  void aRecordedReductionIsReplayed() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              try (CudaSession session = new CudaSession(device)) {
                Tensor tensor = device.tensors().copyOf(Tensor.of(3));
                var recording = session.record(() -> group.allReduce(tensor));
                recording.replay();
                recording.replay();
                device.currentStream().await(Until.LONG);
                recording.close();
                assertThat(device.tensors().toHost(tensor).toIntArray()).containsExactly(12);
              }
            });
  }

  @Test
  void nothingHoldsCollectivesThatHaveEnded() throws Exception {
    ranks().run(2, ForgottenWorks::check);
  }

  /** Lets rank 1 fail while rank 0 waits for it in NCCL. */
  @Test
  void aRankThatCannotBeSetUpEndsTheWaitOfTheOthersInNccl() throws Exception {
    HashStore store = new HashStore();
    NcclBackendProvider none =
        new NcclBackendProvider(
            () -> {
              throw new BackendException("no device here");
            },
            Optional::empty,
            settings -> nccl);
    Duration timeout = Duration.ofSeconds(60);
    try (ExecutorService thread = Executors.newSingleThreadExecutor()) {
      Future<?> waits = thread.submit(() -> ProcessGroup.init(options(store, 0, timeout)));
      Until.holds("rank 0 in NCCL", () -> nccl.calls("ncclCommInitRankConfig") == 1);
      assertThatThrownBy(() -> ProcessGroup.init(options(store, 1, timeout).withProvider(none)))
          .hasStackTraceContaining("no device here");
      assertThatThrownBy(() -> waits.get(60, TimeUnit.SECONDS))
          .isInstanceOf(ExecutionException.class)
          .hasStackTraceContaining("no device here");
    }
  }

  @Test
  void aStoreThatIsClosedDoesNotHideWhyTheRanksDidNotMeet() throws Exception {
    HashStore store = new HashStore();
    BackendContext context =
        BackendContext.builder("g", 0, 2, store, Duration.ofMillis(150))
            .device("cuda", Device.cuda(0))
            .settings(Settings.ofEnvironment(Map.of()))
            .build();
    try (ExecutorService thread = Executors.newSingleThreadExecutor()) {
      Future<?> closes =
          thread.submit(
              () -> {
                Until.holds("NCCL", () -> nccl.calls("ncclCommInitRankConfig") == 1);
                store.close();
              });
      assertThatThrownBy(() -> NcclWorld.join(context, machine.cuda, nccl))
          .isInstanceOf(RendezvousException.class)
          .hasMessageStartingWith("rank 0/2: not all ranks came to the NCCL communicator");
      closes.get(60, TimeUnit.SECONDS);
    }
  }
}
