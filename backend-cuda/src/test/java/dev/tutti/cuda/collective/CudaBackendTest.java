package dev.tutti.cuda.collective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.entry;

import dev.tutti.BackendException;
import dev.tutti.CallOptions;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.ForgottenWorks;
import dev.tutti.cuda.OperationChecks;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.Warnings;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.DeviceAttribute;
import dev.tutti.cuda.driver.LinkCalls.Link;
import dev.tutti.cuda.provider.CudaSession;
import dev.tutti.spi.DeviceSession.Recording;
import dev.tutti.testing.HeldTime;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CudaBackendTest {
  private final FakeMachine machine = new FakeMachine(4);
  private final Cuda cuda = machine.cuda;

  @AfterEach
  void nothingIsLeft() {
    machine.close();
  }

  private static Work sum(ProcessGroup group, Tensor tensor) {
    return group.allReduce(tensor, ReduceOp.SUM, CallOptions.DEFAULT);
  }

  @Test
  void allOperationsHaveTheirResultsOnDevicesOfTheirOwn() throws Exception {
    for (int size : new int[] {1, 2, 3}) {
      new CudaRanks(cuda)
          .run(size, (group, device) -> new OperationChecks(group, device).all(1, 77));
    }
  }

  @Test
  void allOperationsHaveTheirResultsOnOneDevice() throws Exception {
    new CudaRanks(cuda)
        .onOneDevice()
        .run(2, (group, device) -> new OperationChecks(group, device).all(5, 20_000));
  }

  @Test
  void legacyHandlesServeToo() throws Exception {
    new CudaRanks(cuda)
        .with("TUTTI_CUDA_SHARING", "ipc")
        .run(2, (group, device) -> new OperationChecks(group, device).all(9));
    assertThat(machine.fake.calls("cuCtxEnablePeerAccess")).isNotEmpty();
  }

  @Test
  void theSizeChoosesTheAlgorithm() throws Exception {
    new CudaRanks(cuda)
        .with("TUTTI_X_CUDA_ONE_SHOT_BYTES", "1K")
        .with("TUTTI_X_CUDA_TWO_SHOT_BYTES", "4K")
        .run(
            2,
            (group, device) -> {
              for (int floats : new int[] {256, 257, 1024, 1025}) {
                sum(group, device.tensors().copyOf(Tensor.allocate(DType.FLOAT32, floats))).await();
              }
            });
    assertThat(machine.fake.calls("cuLaunchKernel"))
        .extracting(call -> call.split(" ")[1])
        .filteredOn(name -> name.contains("f32_sum"))
        .containsExactlyInAnyOrder(
            "tutti_one_shot_f32_sum",
            "tutti_one_shot_f32_sum",
            "tutti_two_shot_f32_sum",
            "tutti_two_shot_f32_sum",
            "tutti_two_shot_f32_sum",
            "tutti_two_shot_f32_sum",
            "tutti_chunks_f32_sum",
            "tutti_chunks_f32_sum");
  }

  @Test
  void partsOfUnequalSizeHaveKernelsOfTheirOwn() throws Exception {
    new CudaRanks(cuda)
        .with("TUTTI_X_CUDA_TWO_SHOT_BYTES", "4K")
        .run(
            2,
            (group, device) -> {
              for (long[] splits : new long[][] {{500, 3}, {0, 600}, {200, 200}}) {
                long total = splits[0] + splits[1];
                Tensor input = device.tensors().copyOf(Tensor.allocate(DType.FLOAT32, total));
                Tensor own =
                    device.tensors().copyOf(Tensor.allocate(DType.FLOAT32, splits[group.rank()]));
                group.reduceScatterInto(own, input, splits, ReduceOp.SUM);
                group.reduceScatterInto(own, input, splits, ReduceOp.MAX);
              }
            });
    assertThat(machine.fake.calls("cuLaunchKernel"))
        .extracting(call -> call.split(" ")[1])
        .filteredOn(name -> name.contains("f32_"))
        .containsExactlyInAnyOrder(
            "tutti_unequal_two_shot_f32_sum",
            "tutti_unequal_two_shot_f32_sum",
            "tutti_unequal_chunks_f32_other",
            "tutti_unequal_chunks_f32_other",
            "tutti_unequal_chunks_f32_sum",
            "tutti_unequal_chunks_f32_sum",
            "tutti_unequal_chunks_f32_other",
            "tutti_unequal_chunks_f32_other",
            "tutti_two_shot_f32_sum",
            "tutti_two_shot_f32_sum",
            "tutti_two_shot_f32_other",
            "tutti_two_shot_f32_other");
  }

  /** Two devices: connected by a switch, linked directly, without links, and with NVML missing. */
  @ParameterizedTest
  @CsvSource({
    "switch, cuda/one-shot",
    "direct, cuda/one-shot",
    "none, cuda/two-shot",
    "unknown, cuda/one-shot"
  })
  void peersWithoutNvlinkHaveLimitsOfTheirOwn(String links, String path) throws Exception {
    machine.fake.setLinks(
        busId ->
            switch (links) {
              case "switch" -> List.of(new Link.ToSwitch());
              case "direct" ->
                  List.of(
                      new Link.ToDevice(
                          busId.equals("0000:1B:00.0") ? "00000000:1c:00.0" : "00000000:1b:00.0"));
              case "none" -> List.of();
              default -> throw new BackendException("no NVML");
            });
    new CudaRanks(cuda)
        .with("TUTTI_X_CUDA_LANES", "32")
        .run(
            2,
            (group, device) -> {
              Tensor tensor = Tensor.allocate(DType.FLOAT32, (512 << 10) / Float.BYTES);
              sum(group, device.tensors().copyOf(tensor)).await();
              assertThat(group.diagnostics().usageByPath()).containsExactly(entry(path, 1L));
            });
  }

  @Test
  void theCallerChoosesTheAlgorithm() throws Exception {
    String[] asked = {"chunks", "copies", "two-shot", "one-shot"};
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(1f, 2f));
              for (String algorithm : asked) {
                group
                    .allReduce(tensor, ReduceOp.SUM, CallOptions.DEFAULT.withAlgorithm(algorithm))
                    .await();
              }
              assertThat(device.tensors().toHost(tensor).toFloatArray()).containsExactly(16, 32);
              group.barrier();
              assertThat(group.diagnostics().usageByPath())
                  .containsExactly(
                      entry("cuda/barrier", 1L),
                      entry("cuda/chunks", 1L),
                      entry("cuda/copies", 1L),
                      entry("cuda/one-shot", 1L),
                      entry("cuda/two-shot", 1L));
              Tensor large = device.tensors().allocate(DType.FLOAT32, 4 << 20);
              refused(group, large, "one-shot", "16777216 bytes do not fit into");
              refused(
                  group, large, "ring", "its algorithms are chunks, copies, one-shot, two-shot");
              sum(group, tensor).await();
              assertThat(group.diagnostics().usageByPath()).containsEntry("cuda/one-shot", 2L);
            });
    assertThat(machine.fake.calls("cuLaunchKernel"))
        .extracting(call -> call.split(" ")[1])
        .filteredOn(name -> name.contains("f32_sum"))
        .filteredOn(name -> name.contains("chunks"))
        .hasSize(2);
  }

  private static void refused(ProcessGroup group, Tensor tensor, String algorithm, String reason) {
    CallOptions options = CallOptions.DEFAULT.withAlgorithm(algorithm);
    assertThatThrownBy(() -> group.allReduce(tensor, ReduceOp.SUM, options))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageContaining(algorithm)
        .hasMessageContaining(reason)
        .hasMessageContaining("rank " + group.rank());
  }

  @Test
  void aCollectiveTakesOneLaunchAndOneEvent() throws Exception {
    CountDownLatch ready = new CountDownLatch(2);
    CountDownLatch done = new CountDownLatch(2);
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(1f, 2f));
              sum(group, tensor).await();
              ready.countDown();
              assertThat(ready.await(60, TimeUnit.SECONDS)).isTrue();
              if (group.rank() == 0) {
                machine.fake.clearCalls();
              }
              done.countDown();
              assertThat(done.await(60, TimeUnit.SECONDS)).isTrue();
              sum(group, tensor).await();
              group.store().barrier("counted", 2, Until.LONG);
              if (group.rank() == 0) {
                assertThat(machine.fake.calls())
                    .hasSize(4)
                    .filteredOn(call -> call.startsWith("cuLaunchKernel"))
                    .hasSize(2);
              }
              group.store().barrier("looked", 2, Until.LONG);
            });
  }

  @Test
  void aListWithATensorThatIsGoneIsRefusedAsAWhole() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              Tensor first = device.tensors().copyOf(Tensor.of(1f, 2f));
              Tensor second = device.tensors().copyOf(Tensor.of(5f));
              group.barrier();
              if (group.rank() == 0) {
                machine.fake.clearCalls();
                List<Tensor> gone;
                try (Arena arena = Arena.ofConfined()) {
                  gone = List.of(first, device.tensors().allocate(arena, DType.FLOAT32, 1));
                }
                assertThatThrownBy(
                        () -> group.allReduceCoalesced(gone, ReduceOp.SUM, CallOptions.DEFAULT))
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining("the memory of float32[1] on " + device + " was freed");
                assertThat(onCurrentStream("cuLaunchKernel")).isEmpty();
              }
              group.store().barrier("refused", 2, Until.LONG);
              if (group.rank() == 1) {
                assertThat(group.failure()).isEmpty();
                assertThat(device.tensors().toHost(second).toFloatArray()).containsExactly(5);
              }
            });
  }

  private List<String> onCurrentStream(String... names) {
    String stream = " 0x" + Long.toHexString(cuda.currentStream().handle());
    return machine.fake.calls(names).stream().filter(call -> call.endsWith(stream)).toList();
  }

  @Test
  void aListOfWhichAPartWasLaunchedFailsTheGroup() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              Tensor first = device.tensors().copyOf(Tensor.of(1f, 2f));
              Tensor second = device.tensors().copyOf(Tensor.of(5f));
              group.barrier();
              group.store().barrier("through", 2, Until.LONG);
              if (group.rank() == 0) {
                machine.fake.clearCalls();
                machine.fake.failOn("cuLaunchKernel", 2, 1);
                assertThatThrownBy(
                        () ->
                            group.allReduceCoalesced(
                                List.of(first, second), ReduceOp.SUM, CallOptions.DEFAULT))
                    .hasStackTraceContaining("cuLaunchKernel failed");
                assertThat(onCurrentStream("cuLaunchKernel", "cuEventRecord"))
                    .as("the part that was launched is followed")
                    .hasSize(3)
                    .last()
                    .asString()
                    .startsWith("cuEventRecord");
              }
              Until.holds("the failure", () -> group.failure().isPresent());
              group.store().barrier("failed", 2, Until.LONG);
            });
  }

  @Test
  void aRankThatDoesNotComeIsNamed() throws Exception {
    AtomicReference<Throwable> failure = new AtomicReference<>();
    new CudaRanks(cuda)
        .within(Duration.ofMillis(500))
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(1f, 2f));
              if (group.rank() == 0) {
                // The call throws if its thread stands still until the deadline.
                failure.set(catchThrowable(() -> sum(group, tensor).await()));
              } else {
                Until.holds("the failure", () -> group.failure().isPresent());
                assertThatThrownBy(() -> group.allReduce(tensor, ReduceOp.SUM))
                    .isInstanceOf(TuttiException.class);
              }
            });
    assertThat(failure.get())
        .isInstanceOf(CollectiveTimeoutException.class)
        .hasMessageContaining("rank 1");
    // The devices are still usable.
    new CudaRanks(cuda).run(2, (group, device) -> new OperationChecks(group, device).all(3));
  }

  @Test
  void anAbortEndsKernels() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(1f, 2f));
              if (group.rank() == 0) {
                Work work = sum(group, tensor);
                group.abort("enough");
                assertThatThrownBy(work::await)
                    .isInstanceOf(TuttiException.class)
                    .isNotInstanceOf(CollectiveTimeoutException.class);
                Until.holds("the end of the kernel", device.currentStream()::isIdle);
              } else {
                Until.holds("the failure", () -> group.failure().isPresent());
              }
            });
  }

  @Test
  void aGraphRunsAgain() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(1f, 2f));
              sum(group, tensor).await();
              try (CudaSession session = new CudaSession(device);
                  Recording graph =
                      session.record(() -> assertThat(sum(group, tensor).isCompleted()).isTrue())) {
                graph.replay();
                graph.replay();
                assertThat(device.tensors().toHost(tensor).toFloatArray()).containsExactly(8f, 16f);
              }
            });
  }

  @Test
  void aReplayThatAPeerDoesNotMakeFailsTheGroup() throws Exception {
    HeldTime time = new HeldTime();
    CallOptions soon = CallOptions.timeout(Duration.ofMillis(200));
    new CudaRanks(cuda)
        .withTime(time)
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(1f, 2f));
              sum(group, tensor).await();
              // The deadline must not pass while a rank records.
              time.hold();
              try (CudaSession session = new CudaSession(device);
                  Recording graph =
                      session.record(() -> group.allReduce(tensor, ReduceOp.SUM, soon))) {
                group.store().barrier("recorded", 2, Until.LONG);
                time.release();
                if (group.rank() == 0) {
                  graph.replay();
                }
                Until.holds("the failure", () -> group.failure().isPresent());
                assertThat(group.failure().orElseThrow())
                    .hasMessageContaining("rank 0 waited for rank 1 on its device");
              }
            });
  }

  @Test
  void aCloseWaitsForAReplayThatHasNotBegun() throws Exception {
    FakeMachine own = new FakeMachine(2);
    CountDownLatch looked = new CountDownLatch(2);
    HeldTime time = new HeldTime();
    new CudaRanks(own.cuda)
        .withTime(time)
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(1f, 2f));
              sum(group, tensor).await();
              try (CudaSession session = new CudaSession(device);
                  Recording graph = session.record(() -> group.allReduce(tensor))) {
                CountDownLatch held = own.hold(device.currentStream());
                graph.replay();
                group.store().barrier("replayed", 2, Until.LONG);
                // A close that waits too long leaves the memory.
                time.hold();
                FutureTask<?> close = new FutureTask<>(group::close, null);
                Thread.ofPlatform().daemon().start(close);
                Until.holds("the waits", () -> own.fake.calls("cuCtxSynchronize").size() == 2);
                assertThat(own.fake.calls("cuMemUnmap")).isEmpty();
                assertThat(close.isDone()).isFalse();
                looked.countDown();
                assertThat(looked.await(60, TimeUnit.SECONDS)).isTrue();
                held.countDown();
                close.get(60, TimeUnit.SECONDS);
                device.currentStream().await(Until.LONG);
              }
            });
    assertThat(own.fake.calls("cuMemUnmap")).hasSize(4);
    own.close();
  }

  @Test
  void ranksOfOtherLimitsDoNotBegin() {
    CudaRanks ranks = new CudaRanks(cuda).withOnLast("TUTTI_X_CUDA_ONE_SHOT_BYTES", "0");
    assertThatThrownBy(() -> ranks.run(2, (group, device) -> {}))
        .hasStackTraceContaining("rank 1 has TUTTI_X_CUDA_ONE_SHOT_BYTES=0 TUTTI_X_CUDA_TWO_SHOT")
        .hasStackTraceContaining("these settings must be the same on all ranks");
  }

  @Test
  void tensorsOfAnotherDeviceAreRefused() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              CudaDevice other = cuda.device(3);
              Tensor tensor = other.tensors().allocate(DType.FLOAT32, 2);
              assertThatThrownBy(() -> group.allReduce(tensor, ReduceOp.SUM))
                  .hasStackTraceContaining("the group uses cuda:" + group.rank() + " on this rank");
              assertThatThrownBy(() -> group.allReduce(Tensor.of(1f), ReduceOp.SUM))
                  .isInstanceOf(IllegalArgumentException.class)
                  .hasMessageContaining("tensor is on cpu");
              new OperationChecks(group, device).all(2);
            });
  }

  @Test
  void memoryThatWasFreedIsRefused() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              Tensor freed;
              try (Arena arena = Arena.ofShared()) {
                freed = device.tensors().allocate(arena, DType.FLOAT32, 8);
              }
              assertThatThrownBy(() -> group.allReduce(freed, ReduceOp.SUM))
                  .hasStackTraceContaining("the memory of float32[8] on " + device + " was freed");
              new OperationChecks(group, device).all(2);
            });
  }

  @Test
  void whatIsCachedMakesRoomForANewGroup() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              try (Arena arena = Arena.ofShared()) {
                Tensor _ = device.tensors().allocate(arena, DType.UINT8, 64 << 20);
              }
              group.store().barrier("cached", 2, Duration.ofMinutes(1));
              if (group.rank() == 0) {
                machine.fake.memory().setCapacity(machine.fake.memory().used(0));
              }
              group.store().barrier("full", 2, Duration.ofMinutes(1));
              new OperationChecks(group.split(0, 0).orElseThrow(), device).all(2);
            });
  }

  @Test
  void devicesThatDoNotReachEachOtherAreRefused() {
    machine.fake.cutLink(0, 1);
    assertThatThrownBy(() -> new CudaRanks(cuda).run(2, (group, device) -> {}))
        .isInstanceOf(TuttiException.class)
        .hasStackTraceContaining("cannot reach the memory of rank")
        .hasStackTraceContaining("NVLink");
  }

  /** Creating a stream may wait for a kernel that waits for a message of another group. */
  @Test
  void messagesOfManyGroupsMakeNoStreams() throws Exception {
    new CudaRanks(cuda)
        .run(
            4,
            (group, device) -> {
              List<ProcessGroup> groups = new ArrayList<>();
              for (int g = 0; g < 4; g++) {
                groups.add(group.subgroup(List.of(0, 1, 2, 3)).orElseThrow());
              }
              group.store().barrier("made", 4, Until.LONG);
              machine.fake.clearCalls();
              for (ProcessGroup each : groups) {
                exchange(each, device);
              }
              assertThat(machine.fake.calls("cuStreamCreateWithPriority")).isEmpty();
              group.store().barrier("looked", 4, Until.LONG);
              groups.forEach(ProcessGroup::close);
            });
  }

  /** Sends to each rank and receives from each. */
  private static void exchange(ProcessGroup group, CudaDevice device) {
    Tensor own = device.tensors().copyOf(Tensor.of(group.rank() + 1f));
    List<Work> works = new ArrayList<>();
    List<Tensor> received = new ArrayList<>();
    for (int r = 0; r < group.size(); r++) {
      if (r != group.rank()) {
        received.add(device.tensors().allocate(DType.FLOAT32, 1));
        works.add(group.recv(received.getLast(), r, 0, CallOptions.ASYNC));
        works.add(group.send(own, r, 0, CallOptions.ASYNC));
      }
    }
    works.forEach(Work::await);
    double sum =
        received.stream()
            .mapToDouble(each -> device.tensors().toHost(each).toFloatArray()[0])
            .sum();
    assertThat(sum).isEqualTo(10 - (group.rank() + 1));
  }

  @Test
  void aMessageOfAnotherSizeFailsBothSides() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().allocate(DType.FLOAT32, 4 + group.rank());
              assertThatThrownBy(
                      () -> {
                        if (group.rank() == 0) {
                          group.send(tensor, 1, 7, CallOptions.DEFAULT).await();
                        } else {
                          group.recv(tensor, 0, 7, CallOptions.DEFAULT).await();
                        }
                      })
                  .isInstanceOf(TuttiException.class)
                  .hasStackTraceContaining("16 bytes with tag 7 arrived for a tensor of 20 bytes");
            });
  }

  @Test
  void operationsInPartsTakeOneEvent() throws Exception {
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              List<Tensor> tensors = new ArrayList<>();
              for (int i = 0; i < 5; i++) {
                tensors.add(device.tensors().copyOf(Tensor.of(1f, i)));
              }
              for (int round = 0; round < 3; round++) {
                group.allReduceCoalesced(tensors, ReduceOp.SUM, CallOptions.DEFAULT).await();
              }
              group.barrier();
              int most = 8; // of 15 parts; the lane's last one, and what copies left
              assertThat(Parts.of(device).events().inUse()).isLessThanOrEqualTo(most);
            });
  }

  @Test
  void sharedDevicesNeedLeave() {
    assertThatThrownBy(
            () ->
                new CudaRanks(cuda)
                    .onOneDevice()
                    .with("TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES", "0")
                    .run(2, (group, device) -> {}))
        .isInstanceOf(TuttiException.class)
        .hasStackTraceContaining("ranks 0 and 1 have the same device 0000:1B:00.0");
  }

  @Test
  void ranksOfAProcessThatShareADeviceAreWarnedOf() throws Exception {
    try (Warnings warnings = new Warnings(CudaWorld.class, line -> true)) {
      new CudaRanks(cuda).run(2, (group, device) -> {});
      assertThat(warnings.messages()).isEmpty();
      new CudaRanks(cuda).onOneDevice().run(3, (group, device) -> {});
      assertThat(warnings.messages())
          .containsExactly(
              "rank 0: rank 1 of this process also uses cuda:0; while the host is busy, the driver"
                  + " may put copies of both into one queue, where they wait for each other until"
                  + " their deadlines; give each rank a process or a device of its own");
    }
  }

  @Test
  void aDirectoryWithoutRoomForSocketsIsNamed() {
    assertThatThrownBy(
            () -> new CudaRanks(cuda).with("TMPDIR", "/nowhere").run(2, (group, device) -> {}))
        .isInstanceOf(TuttiException.class)
        .hasStackTraceContaining("is its directory writable?");
  }

  @Test
  void tooManyRanksAreRefused() {
    assertThatThrownBy(
            () ->
                ProcessGroup.init(
                        new CudaRanks(cuda).options(new dev.tutti.store.HashStore(), 0, 9))
                    .close())
        .isInstanceOf(BackendException.class)
        .hasMessageContaining("8 ranks at most");
  }

  @ParameterizedTest
  @CsvSource({"0, true", "1, false"})
  void multicastIsNotReportedWhereItIsSwitchedOff(String disabled, boolean reported)
      throws Exception {
    new CudaRanks(cuda)
        .with("TORCH_SYMM_MEM_DISABLE_MULTICAST", disabled)
        .run(
            2,
            (group, device) -> {
              try (var memory = group.allocateSymmetric(100)) {
                assertThat(memory.hasMulticast()).isEqualTo(reported);
                group.barrier();
              }
            });
  }

  @ParameterizedTest
  @CsvSource({
    "NVSHMEM, Tutti does not support symmetric memory of NVSHMEM",
    "NCCL, Tutti does not support symmetric memory of NCCL",
    "cuda, 'must be one of CUDA, NVSHMEM and NCCL'"
  })
  void otherSymmetricMemoryIsRefused(String name, String reason) throws Exception {
    new CudaRanks(cuda).with("TORCH_SYMMMEM", "CUDA").run(1, (group, device) -> {});
    assertThatThrownBy(
            () -> new CudaRanks(cuda).with("TORCH_SYMMMEM", name).run(2, (group, device) -> {}))
        .hasStackTraceContaining(
            "TORCH_SYMMMEM='" + name + "' (from the program) cannot be read: " + reason);
  }

  @Test
  void multicastIsReportedOnly() throws Exception {
    machine.fake.setAttribute(DeviceAttribute.MULTICAST, 0);
    new CudaRanks(cuda)
        .run(
            2,
            (group, device) -> {
              try (var memory = group.allocateSymmetric(100)) {
                assertThat(memory.hasMulticast()).isFalse();
                group.barrier();
              }
            });
  }

  @Test
  void nothingHoldsCollectivesThatHaveEnded() throws Exception {
    new CudaRanks(cuda).run(2, ForgottenWorks::check);
  }
}
